"""refusals.py KVC.H REFUSALS_TEST.C: is every function that can fail tested?"""

import re
import sys

header, test = (open(path).read() for path in sys.argv[1:3])
header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
exported = re.findall(r"KVC_API\s+([\w\s*]+?)\s*(kvc_\w+)\(", header)
can_fail = {name for result, name in exported if result == "kvc_status"}
refused = set(re.findall(r"(?:REFUSED|INVALID|INVALID_SIZES)\((kvc_\w+),", test))
print(f"{len(exported)} functions, of which {len(can_fail)} can fail")
if not can_fail or can_fail != refused:
    sys.exit(f"error: expected refusals of each, but these differ: "
             f"{sorted(can_fail ^ refused)}")
