#!/usr/bin/env bash
# A bundle holds every library of the analyzer but glibc's, by the loader's own account, and runs.
#   bundle_test.sh ROOT INSTALLED
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1/scripts/bundle" "$folder/vt" "$2"
elsewhere=$(ldd "$folder/vt/bin/vramtrack" | grep ' => ' | grep -v " => $folder/" | grep -v '^\s*lib[cm]\.so\.6 ' || true)
if [[ -n $elsewhere ]]; then
  echo "FAILED: not in the bundle: $elsewhere"
  exit 1
fi
(($(ls "$folder/vt/lib/vramtrack/bundled" | wc -l) >= 5)) || { echo "FAILED: the bundle is empty"; exit 1; }
"$folder/vt/bin/vramtrack" --version
test -e "$folder/vt/lib/libvramtrack.so"
