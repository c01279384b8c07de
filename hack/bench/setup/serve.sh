#!/bin/bash
# A database server that all machines may use.
set -euo pipefail
cd ~
export PATH=$HOME/artifact/postgresql/bin:$PATH
initdb -D data -A trust >init.log
cat >>data/postgresql.conf <<'EOF'
listen_addresses = '*'
unix_socket_directories = '/tmp'
EOF
echo "host all all all trust" >>data/pg_hba.conf
pg_ctl -D data -l server.log -w start >start.log
createdb -h /tmp bench
