#!/usr/bin/env bash
# Provides Terraform's providers on a machine that cannot reach their registry: builds them from Go modules and lays them out as a mirror.
#
# Users do not need this: `terraform init` gets the providers from the registry. Tests use it, so that they run anywhere and reach nothing.
#
# usage: providers.sh [NAME...]      (all of providers.txt)
# Output: one line for a shell to evaluate, which makes Terraform take its providers from the mirror and from nowhere else:
#   eval "$(hack/without-registry/terraform/providers.sh)"
# Changes on the machine: ASSAY_CACHE. Each provider is built once for each content of its go.mod: minutes, and some GB of Go's build cache.
. "$(dirname "${BASH_SOURCE[0]}")/../../cluster/lib.sh"

here=$hack/without-registry/terraform
cache=$ASSAY_CACHE/terraform
platform=$(go env GOOS)_$(go env GOARCH)

# build NAME PACKAGE: the program, from hack/without-registry/terraform/NAME/go.mod; prints its path.
build() {
	local key out
	key=$(cat "$here/$1/go.mod" "$here/$1/go.sum" | sha256sum | cut -c1-12)
	out=$cache/$1/$key-$platform
	mkdir -p "$out"
	# One run at a time builds it; the others wait, and find it.
	exec 9>"$cache/$1/.lock"
	[[ -x $out/provider ]] || flock 9
	if [[ ! -x $out/provider ]]; then
		say "building the $1 provider"
		CGO_ENABLED=0 GOFLAGS=-buildvcs=false nice go -C "$here/$1" build -trimpath -ldflags '-s -w' -o "$out/provider.part" "$2" >&2 || return 1
		mv "$out/provider.part" "$out/provider"
	fi
	exec 9>&-
	echo "$out/provider"
}

# lay_out SOURCE VERSION PROGRAM: puts a program into the mirror. A hard link: Terraform copies or links the folder, not the file.
lay_out() {
	local type=${1##*/} dir=$mirror/$1/$2/$platform
	local program=$dir/terraform-provider-${type}_v$2
	mkdir -p "$dir"
	if [[ ! $program -ef $3 ]]; then
		ln -f "$3" "$program.$$"
		mv "$program.$$" "$program"
	fi
}

has go || die "go is not installed"
mkdir -p "$cache"
mirror=$cache/mirror-$(sha256sum "$here/providers.txt" | cut -c1-12)
while read -r name source version package; do
	[[ -n $name && $name != \#* ]] || continue
	if [[ $# -gt 0 && " $* " != *" $name "* ]]; then continue; fi
	if ! program=$(build "$name" "$package"); then
		say "the provider $name cannot be built here: what needs it fails"
		continue
	fi
	lay_out "$source" "$version" "$program"
done <"$here/providers.txt"

mkdir -p "$mirror"
cat >"$mirror/cli.tfrc.$$" <<-END
	# Written by hack/without-registry/terraform/providers.sh.
	disable_checkpoint = true
	provider_installation {
	  filesystem_mirror {
	    path = "$mirror"
	  }
	}
END
mv "$mirror/cli.tfrc.$$" "$mirror/cli.tfrc"
printf 'export TF_CLI_CONFIG_FILE=%q\n' "$mirror/cli.tfrc"
