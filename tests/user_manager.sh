#!/bin/bash
# user_manager.sh GROUP USER COMMAND [ARG...]: COMMAND as USER under a systemd user manager of its own. Root only.
# GROUP is an empty cgroup v2 directory; whoever made it ends what is left in it and removes it. The caller's HOME is
# the user's. The script runs itself again at each step inwards; the second word says which.
set -euo pipefail

outside() { # namespaces in which nothing of the machine's own systemd is seen
  local group=$1
  mkdir "$group/outside"
  echo 0 >"$group/outside/cgroup.procs"
  exec unshare --mount --pid --fork --kill-child=KILL --mount-proc "$self" in-group "$@"
}

in-group() { # the given cgroup is the root of all that is seen
  echo 0 >"$1/cgroup.procs"
  shift
  exec unshare --cgroup "$self" root-inside "$@"
}

root-inside() { # what a machine booted by systemd would show to a user manager, and a cgroup that is the user's
  local user=$1 uid
  uid=$(id -u "$user")
  shift
  mount --make-rprivate /
  umount --lazy /sys/fs/cgroup # the same file system would not be mounted over itself
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir -p /run/systemd/system /run/user
  install -d -m 700 -o "$user" "/run/user/$uid"
  mkdir /sys/fs/cgroup/user
  chown -R "$user" /sys/fs/cgroup/user
  echo 0 >/sys/fs/cgroup/user/cgroup.procs
  for controller in $(</sys/fs/cgroup/cgroup.controllers); do # nobody stands between the leaves any more
    echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
  done
  exec runuser -u "$user" -- env -i HOME="$HOME" USER="$user" LOGNAME="$user" SHELL=/bin/bash LANG=C.UTF-8 \
    PATH=/usr/local/bin:/usr/bin:/bin XDG_RUNTIME_DIR="/run/user/$uid" SYSTEMD_LOG_TARGET=console SYSTEMD_LOG_LEVEL=err \
    "$self" user-inside "$@"
}

user-inside() { # the manager, the command once it is up, and its orderly end
  /lib/systemd/systemd --user &
  local manager=$! code=0
  until systemctl --user is-system-running 2>/dev/null | grep -qE 'running|degraded'; do
    kill -0 "$manager" || { echo "the user manager ended before it was up" >&2; exit 70; }
    sleep 0.02
  done
  "$@" || code=$?
  systemctl --user exit 2>/dev/null || true
  wait "$manager" || true
  exit "$code"
}

self=$(realpath "$0")
case $1 in
  in-group | root-inside | user-inside) step=$1; shift; "$step" "$@" ;;
  *) outside "$@" ;;
esac
