"""Write the URL of the database as a service file of PostgreSQL: FILE.

So pg_dump needs no password on its command line, which every process of the node can read.
"""

import os
import sys
from urllib.parse import parse_qsl, unquote, urlsplit

url = urlsplit(os.environ["MATCHPOD_DATABASE_URL"])
login, _, places = url.netloc.rpartition("@")
user, _, password = login.partition(":")
hosts, ports = [], []
for place in filter(None, places.split(",")):
    host, colon, port = place.rpartition(":")
    if not colon or "]" in port:  # no port; the colons are those of an IPv6 address
        host, port = place, ""
    hosts.append(unquote(host.strip("[]")))
    ports.append(port)
fields = {
    "host": ",".join(hosts),
    "dbname": unquote(url.path[1:]),
    "user": unquote(user),
    "password": unquote(password),
}
fields["port"] = ",".join(ports) if any(ports) else ""
fields.update(parse_qsl(url.query))
bad = [name for name, value in fields.items() if value != value.strip() or "\n" in value]
if bad:
    sys.exit(f"a service file cannot have this value of the database URL: {', '.join(bad)}")
lines = [f"{name}={value}\n" for name, value in fields.items() if value]
with open(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
    file.writelines(["[matchpod]\n", *lines])
