-- Fragment: a UUIDv7: milliseconds since 1970, the version, random bits with the variant before them.
lower(printf('%08x-%04x-7%s-%s%s-%s',
  (strftime('%s', 'now') || substr(strftime('%f', 'now'), 4)) >> 16,
  (strftime('%s', 'now') || substr(strftime('%f', 'now'), 4)) & 65535,
  substr(hex(randomblob(2)), 2), substr('89ab', 1 + (random() & 3), 1),
  substr(hex(randomblob(2)), 2), hex(randomblob(6))))
