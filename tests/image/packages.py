"""`python -m tests.image.packages`: install what builds the image, if root runs it."""

from tests.image.building import BUILDAH, DEBOOTSTRAP
from tests.servers import debian

if __name__ == "__main__":
    raise SystemExit(debian.main((BUILDAH, DEBOOTSTRAP)))
