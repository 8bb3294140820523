"""Check that a service is ready and its regions are active: URL. Exit with a sentence if not."""

import json
import sys
import urllib.error
import urllib.request

url = sys.argv[1]
try:
    with urllib.request.urlopen(f"{url}/readyz", timeout=30) as answer:
        print("ready:", answer.read().decode())
    with urllib.request.urlopen(f"{url}/api/v1/regions", timeout=30) as answer:
        regions = json.load(answer)
except urllib.error.HTTPError as error:
    sys.exit(f"{error.url} answered {error.code}: {error.read().decode()}")
except OSError as error:
    sys.exit(f"{url} cannot be reached: {error}")
print("regions:", json.dumps(regions))
inactive = [region["code"] for region in regions if not region["isActive"]]
if not regions or inactive:
    sys.exit(f"not active: {', '.join(inactive) or 'there are no regions'}")
