#!/usr/bin/env bash
# Builds PostgreSQL from Debian's source in the image of machines: set-up of minutes, as artifacts
# have it. While AT_LEAST seconds have not passed, it builds anew.
set -euo pipefail
# shellcheck source=/dev/null
. ./at-least
src=/tmp/postgresql
sed 's/^deb /deb-src /' /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
apt-get update -q
mkdir -p "$src"
cd "$src"
apt-get source -q --only-source postgresql-15
cd postgresql-15-*/
./configure --quiet --prefix=/home/author/artifact/postgresql --without-readline --without-zlib
builds=0
while ((builds == 0 || SECONDS < AT_LEAST)); do
	make -s clean
	make -s -j"$(nproc)"
	builds=$((builds + 1))
done
make -s install
rm -rf "$src" /etc/apt/sources.list.d/source.list
echo "$builds builds in $SECONDS s"
