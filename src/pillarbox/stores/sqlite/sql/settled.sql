-- Fragment: what is settled.
temp.desk
