#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fresh.sh [bookworm|trixie|container]... - what a newcomer types, on machines that have nothing but make. For each release of Debian
# a root is made by mmdebstrap from this machine's mirror, the tree is copied in, and make demo and make test run there; "container"
# builds packaging/Containerfile over the imported bookworm and asks its server for an answer. Logs stay in build-fresh/, the roots do
# not. FRESH_COMMANDS: what to run there instead of "demo test". Needs root; where something that it stands on is missing it says so
# in a line and succeeds, since that says nothing about the tree.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() { echo "skipped: $*" >&2; exit 0; }
[ "$(id -u)" -eq 0 ] || skip "make fresh needs root (it makes a system and enters it)"
for tool in mmdebstrap unshare git curl; do
    command -v $tool > /dev/null || skip "$tool is missing (Debian packages: mmdebstrap util-linux git curl)"
done
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2> /dev/null | grep -m 1 '/debian/\?$' || true)
[ -n "$mirror" ] || skip "apt knows no mirror of Debian here"
curl -fsI --max-time 60 "${mirror%/}/dists/bookworm/Release" > /dev/null || skip "$mirror does not answer"

here=$PWD/build-fresh
mkdir -p "$here"
work=$(mktemp -d "$here/root.XXXXXX")
clean() {
    if [ -d "$work/storage" ]; then "${podman[@]}" system reset --force > /dev/null 2>&1 || true; fi
    rm -rf --one-file-system "$work"
}
podman=(podman --storage-driver vfs --root "$work/storage" --runroot "$work/run")
trap clean EXIT
failed=0
results=()
timed() { # what, log, command: runs it, and notes how it ended and how long it took
    local what=$1 log=$2 start=$SECONDS code=0
    shift 2
    echo "$what: started, output in ${log#"$PWD"/}" >&2
    "$@" > "$log" 2>&1 < /dev/null || code=$?
    results+=("$what: exit status $code, $((SECONDS - start)) s")
    echo "${results[-1]}" >&2
    [ $code -eq 0 ] || failed=1
    return $code
}
tree() { # folder: this working tree without what git ignores
    mkdir -p "$1"
    git ls-files -z --cached --others --exclude-standard --deduplicate | tar --create --null --files-from - --ignore-failed-read 2> /dev/null |
        tar --extract --directory "$1"
}
trust() { # root: whom this machine trusts beside Debian's list, for networks that open connections
    local own=/usr/local/share/ca-certificates
    [ -d $own ] && mkdir -p "$1$own" && cp -r $own/. "$1$own/"
    [ ! -f /etc/pip.conf ] || grep -q '^cert' /etc/pip.conf || cp /etc/pip.conf "$1/etc/pip.conf"
    cp /etc/resolv.conf "$1/etc/resolv.conf"
}
kept=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY JOBS; do
    if [ -n "${!name-}" ]; then kept+=("$name=${!name}"); fi
done
inside() { # root, user, command: with its own processes and mounts, which end with it
    unshare --mount --pid --fork --kill-child bash -euc '
        root=$1 user=$2; shift 2
        mount --make-rprivate /
        mount -t proc proc "$root/proc"
        for at in dev sys; do mount --rbind "/$at" "$root/$at"; done
        exec chroot --userspec="$user" "$root" env -i "$@"' - "$1" "$2" "${kept[@]}" "${@:3}"
}
system() { # release, file or folder to make
    mmdebstrap --quiet --variant=minbase --include=make "$1" "$2" "$mirror"
}

on_release() { # release
    local root=$work/$1 command
    timed "$1, root" "$here/$1-root.log" system "$1" "$root" || return 0
    trust "$root"
    tree "$root/root/hunch"
    for command in ${FRESH_COMMANDS:-demo test}; do
        timed "$1, make $command" "$here/$1-$command.log" inside "$root" root make -C /root/hunch "$command" || true
    done
    rm -rf --one-file-system "$root"
}

answers() { # asks the server of the image, as the user and with the command that the image names, for four tokens
    local model port=18277 root code=1 command user
    model=$(./scripts/fetch-demo-model.sh) || return 1
    root=$("${podman[@]}" image mount hunch-fresh)
    mapfile -t command < <("${podman[@]}" image inspect --format '{{range .Config.Entrypoint}}{{println .}}{{end}}' hunch-fresh | sed '/^$/d')
    user=$("${podman[@]}" image inspect --format '{{.Config.User}}' hunch-fresh)
    install -m 644 "$model" "$root/tmp/model.gguf"
    # Not by podman run: it sets limits of processes, which the root of a sandbox may not.
    inside "$root" "$user" "${command[@]}" /tmp/model.gguf --port $port &
    for _ in $(seq 60); do
        if curl -fs --max-time 20 "http://127.0.0.1:$port/v1/completions" -H 'content-type: application/json' \
            -d '{"prompt": "The sky is", "max_tokens": 4, "temperature": 0}'; then
            code=0
            break
        fi
        sleep 1
    done
    kill %% && wait %% || true
    return $code
}
image() {
    local name
    system bookworm "$work/bookworm.tar"
    for name in bookworm bookworm-slim; do "${podman[@]}" import "$work/bookworm.tar" "docker.io/library/debian:$name"; done
    tree "$work/tree"
    "${podman[@]}" build --pull=never --isolation chroot --network host -f packaging/Containerfile -t hunch-fresh "$work/tree"
    "${podman[@]}" images
}
in_container() {
    command -v podman > /dev/null || { results+=("container: skipped, podman is missing"); return 0; }
    timed "container, build" "$here/container-build.log" image || return 0
    timed "container, answer" "$here/container-answer.log" answers || true
}

[ $# -gt 0 ] || set -- bookworm trixie container
for what; do
    case $what in
    container) in_container ;;
    bookworm | trixie) on_release "$what" ;;
    *) echo "$0: $what is neither bookworm, trixie nor container" >&2; exit 2 ;;
    esac
done
printf '%s\n' "${results[@]}"
exit $failed
