# shellcheck shell=bash
# Sourced by the scripts that Terraform runs on the operator's machine, also those of kubeadm-cluster: how a host is reached and what is said when
# it is not.
#
# A host is known by a prefix: NODE, or CP for the control plane. Inputs (environment), for each prefix used:
#   <P>_NAME <P>_ADDRESS <P>_PORT <P>_USER  who it is; <P>_HOST_KEY its public key, or empty
#   SSH_KEY_FILE     private key, or empty: the agent's
#   SSH_KNOWN_HOSTS  where keys of hosts without a host key are kept
#   SSH_JUMP         [user@]host[:port], or empty
#   SSH_WAIT         seconds that a host has to answer;  SSH_DEAD  the same, for a host that is to be released
# Changes: SSH_KNOWN_HOSTS.
set -euo pipefail

again='Then run terraform apply again: what is done stays done.'

say() { printf '%s\n' "$*" >&2; }

# field PREFIX NAME: one input of a host.
field() {
	local name=$1_$2
	printf %s "${!name:-}"
}

# fail PREFIX MESSAGE: names the host. Terraform shows what a script printed.
fail() {
	say "error: host $(field "$1" NAME) ($(field "$1" USER)@$(field "$1" ADDRESS), port $(field "$1" PORT)) $2"
	exit 1
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# ssh_command PREFIX: leaves in SSH the command up to the host, and in ROOT what makes a remote command root's.
ssh_command() {
	local hosts=$SSH_KNOWN_HOSTS checking=accept-new name options
	if [[ -n $(field "$1" HOST_KEY) ]]; then
		name=$(field "$1" ADDRESS)
		[[ $(field "$1" PORT) = 22 ]] || name="[$name]:$(field "$1" PORT)"
		hosts=$scratch/$1.known checking=yes
		printf '%s %s\n' "$name" "$(field "$1" HOST_KEY)" >"$hosts"
	fi
	options=(-o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=4 -o LogLevel=ERROR -o UpdateHostKeys=no)
	[[ -z $SSH_KEY_FILE ]] || options+=(-i "$SSH_KEY_FILE")
	SSH=(ssh "${options[@]}" -o "StrictHostKeyChecking=$checking" -o "UserKnownHostsFile=$hosts")
	[[ -z $SSH_KEY_FILE ]] || SSH+=(-o IdentitiesOnly=yes) # the jump host may have a key of the agent's
	case $SSH_JUMP in
	'') ;;
	*,*) SSH+=(-J "$SSH_JUMP") ;; # one behind the other: they have what ~/.ssh/config says
	*) SSH+=(-o "ProxyCommand=$(through "${options[@]}")") ;;
	esac
	SSH+=(-p "$(field "$1" PORT)" "$(field "$1" USER)@$(field "$1" ADDRESS)")
	ROOT='sudo -n '
	[[ $(field "$1" USER) != root ]] || ROOT=
}

# through OPTION...: the command that goes through SSH_JUMP. ssh -J would keep these options to itself: no key for the jump host, and a question about its
# host key that nobody answers.
through() {
	local host=$SSH_JUMP port=() words
	if [[ $host =~ ^(.*):([0-9]+)$ ]]; then host=${BASH_REMATCH[1]} port=(-p "${BASH_REMATCH[2]}"); fi
	words=$(printf '%q ' ssh "$@" -o StrictHostKeyChecking=accept-new -o "UserKnownHostsFile=$SSH_KNOWN_HOSTS ~/.ssh/known_hosts" "${port[@]}")
	printf '%s-W %%h:%%p %q' "${words//%/%%}" "$host"
}

# answers PREFIX SECONDS: does the host let us in and be root, now or within that time? The reason why not is left in WHY.
answers() {
	local deadline=$((SECONDS + $2))
	ssh_command "$1"
	until WHY=$(timeout -k 5 30 "${SSH[@]}" "${ROOT}true" 2>&1 </dev/null); do
		WHY=${WHY//$'\r'/}
		[[ $WHY != *'ost key verification failed'* && $WHY != *'no such identity'* ]] || return 1
		((SECONDS < deadline)) || return 1
		sleep 1
	done
}

# reach PREFIX: the same, and if not, ends the script with what to do.
reach() {
	if answers "$1" "$SSH_WAIT"; then return; fi
	turned_away "$1"
	local last
	last=$(tail -n 1 <<<"$WHY")
	fail "$1" "does not answer SSH within $SSH_WAIT s (${last:-no answer}). Is it switched on and connected, and is the address right? Switch it on, or take it out of hosts. $again"
}

# lives PREFIX: is a host that is to be released there, or dead? One that is there and does not let us in ends the script: an empty SSH agent is no
# reason to let machines go as they are.
lives() {
	if answers "$1" "$SSH_DEAD"; then return; fi
	local again="Then run terraform again: what is done stays done; the user and the key file are those of the last apply. Or let the machine go as it is: terraform state rm, with the resource that Terraform names."
	turned_away "$1"
	return 1
}

# turned_away PREFIX: ends the script if WHY says that the host is there and why it does not let us in.
turned_away() {
	local last
	last=$(tail -n 1 <<<"$WHY")
	# What the jump host's ssh says stands before the end of the connection to the host, of which nothing is known then.
	if [[ -n $SSH_JUMP && $last = *@(kex_exchange_identification|'UNKNOWN port')* && $WHY = *@('Permission denied'|'ost key verification failed'|'connect to host'|'Could not resolve')* ]]; then
		fail "$1" "is behind ssh.proxy_jump, $SSH_JUMP, which does not let us through ($(tail -n 2 <<<"$WHY" | head -n 1)). Is it there? User and key must be right for it, too, and if it was installed anew: ssh-keygen -f $SSH_KNOWN_HOSTS -R, with its name. $again"
	fi
	case $WHY in
	*'ost key verification failed'*)
		if [[ -n $(field "$1" HOST_KEY) ]]; then
			fail "$1" "does not have the SSH host key that its host_key says. Is this the right machine? If it was installed anew, correct host_key. $again"
		fi
		fail "$1" "has another SSH host key than last time. Is this the right machine? If it was installed anew: ssh-keygen -f $SSH_KNOWN_HOSTS -R '$(field "$1" ADDRESS)' (with a port other than 22: '[address]:port'). $again"
		;;
	*'Permission denied'* | *'Too many authentication failures'*)
		fail "$1" "refuses this user or key ($last). Correct user, or ssh_private_key_file, or add the key to the SSH agent and to the machine's authorized_keys. $again"
		;;
	*sudo:*)
		fail "$1" "lets us in, but $(field "$1" USER) may not become root without a password ($last). Allow it in /etc/sudoers.d, or log in as root. $again"
		;;
	esac
}

# run PREFIX SECONDS WHAT FILE [NAME=VALUE...]: runs a file of bash as root on the host, with these variables. It goes in by stdin, also the
# variables: nothing of it is in the arguments of a process here or there. WHAT is for messages: "while WHAT". A line "refused: REASON" on its
# stderr is the reason why it failed; without one, the command is named at which it ended, as written: with names of variables, not values.
run() {
	local prefix=$1 seconds=$2 what=$3 file=$4 rc=0 reason
	shift 4
	ssh_command "$prefix"
	{
		printf '%s\n' 'set -E' "trap 'printf \"stopped at: %s\n\" \"\$BASH_COMMAND\" >&2' ERR"
		[[ $# = 0 ]] || printf 'export %q\n' "$@"
		cat "$file"
	} | timeout -k 5 "$seconds" "${SSH[@]}" "${ROOT}bash -s" 2>"$scratch/stderr" || rc=$?
	grep -vE '^(refused|stopped at): ' "$scratch/stderr" >&2 || true
	reason=$(sed -n 's/^refused: //p' "$scratch/stderr" | tail -n 1)
	[[ -n $reason ]] || reason=$(grep '^stopped at: ' "$scratch/stderr" | head -n 1 || true)
	case $rc in
	0) ;;
	124 | 137) fail "$prefix" "did not end within $seconds s while $what. $again" ;;
	255) fail "$prefix" "was lost while $what: it was switched off, or the network is broken. $again" ;;
	*) fail "$prefix" "failed while $what: ${reason:-see the lines above}. $again" ;;
	esac
}

# put PREFIX DIRECTORY: copies the files in it to the host, with their modes, below /. Directories that are there stay as they are.
put() {
	ssh_command "$1"
	(cd "$2" && find . -type f -print0 | tar --null --files-from=- --owner=0 --group=0 -cf -) |
		timeout -k 5 120 "${SSH[@]}" "${ROOT}tar -C / -xf -" || fail "$1" "did not take the files of this module. $again"
}
