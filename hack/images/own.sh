#!/usr/bin/env bash
# Makes a container image of programs that you have built, with the shared libraries that they need,
# and loads it into every node of the kind cluster. It needs no docker build and no registry.
#
# usage: own.sh [--only-build] NAME FILE...
#   NAME   of the image, without a tag, such as lab/kv; its tag is dev
#   FILE   a program, which goes to /usr/local/bin in the image; or a directory, whose content goes
#          to the root of the image, such as what debootstrap makes
#   --only-build   write the archive; load it nowhere
# The image has the shell /bin/sh, no certificates, and the user 65532.
# Inputs:  CLUSTER; the libraries that ldd finds here.
# Changes: .work/own/NAME; .work/images, where kubectl assay run --local looks; images in the nodes'
#          containerd, if the cluster runs.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

load=1
if [[ ${1:-} = --only-build ]]; then
	load=0
	shift
fi
(($# >= 2)) || die "usage: own.sh [--only-build] NAME FILE... (make image NAME=lab/kv FILES=\"build/server build/client\")"
name=$1
shift
[[ $name =~ ^[a-z0-9]+([._-][a-z0-9]+)*(/[a-z0-9]+([._-][a-z0-9]+)*)+$ ]] ||
	die "NAME is \"$name\"; it must be the name of an image without a tag, in lower case, with a slash: lab/kv"
[[ $name != assay/* ]] || die "NAME is \"$name\"; the names assay/... are those of this repository's images: use another, such as lab/${name#assay/}"
for file; do
	[[ -e $file ]] || die "FILE \"$file\" does not exist"
	[[ -d $file || -x $file ]] || die "FILE \"$file\" is neither a directory nor a program: chmod +x it, or put it into a directory"
done

make_work
out=$work/own/$name
root=$out/root
rm -rf "$root"
mkdir -p "$root"
# A directory may be the root of a distribution, where /bin is a link: it goes first.
for file; do [[ ! -d $file ]] || cp -a "$file/." "$root/"; done
# The root of a Debian has its own libraries, by its package manager. What that keeps of downloads
# is of no use in an image, and devices are the runtime's.
debian=0
if [[ -s $root/var/lib/dpkg/status ]]; then
	debian=1
	rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/log/* "${root:?}"/dev/* "$root"/debootstrap
fi
mkdir -p "$root"/{bin,etc,usr/local/bin}
[[ -e $root/bin/sh ]] || cp "$(readlink -f /bin/sh)" "$root/bin/sh"
[[ -e $root/etc/nsswitch.conf ]] || echo "hosts: files dns" >"$root/etc/nsswitch.conf"
for file; do [[ -d $file ]] || cp -L "$file" "$root/usr/local/bin/"; done

# link_library FILE: the image looks for libraries in /usr/lib, whatever is set where it runs.
link_library() {
	mkdir -p "$root/usr/lib"
	ln -sf "$1" "$root/usr/lib/$(basename "$1")"
}

# Libraries that the programs and libraries below the root need and that are not there.
missing=() found=()
programs=("$root")
if ((debian)); then programs=("$root/usr/local"); else found=("$(readlink -f /bin/sh)"); fi
while read -r library; do
	if [[ $library = /* ]]; then
		[[ -e $root$library ]] || install -D "$library" "$root$library"
		# Others were found by LD_LIBRARY_PATH, or by a path in the program.
		[[ $library = @(/lib|/lib64|/usr/lib)/?(*-linux-gnu/)+([^/]) ]] || link_library "$library"
		found+=("$(readlink -f "$library")")
	else
		missing+=("$library")
	fi
done < <(find "${programs[@]}" -type f \( -perm -u+x -o -name '*.so*' \) -exec ldd {} + 2>/dev/null |
	awk '$2 == "=>" && $3 ~ /^\// {print $3} $2 == "=>" && $3 == "not" {print $1} $1 ~ /^\/.*ld-[^:]*$/ {print $1}' | sort -u)
((${#missing[@]} == 0)) || die "these libraries are not on this machine: ${missing[*]}. Install them, set LD_LIBRARY_PATH, or put them into a directory FILE"
# The packages that they are from go into the list of what is in the image. It lacks files of no
# package, and is empty where there is no dpkg: the image is the same.
install -d "$root/usr/share/assay"
for file in ${found[@]+"${found[@]}"}; do
	# A merged /usr has two names for a file, of which the package manager knows one.
	dpkg-query -S "$file" "${file#/usr}" 2>/dev/null | cut -d: -f1 || true
done | sort -u | while read -r package; do
	dpkg-query -W -f '${Package}=${Version}\n' "$package" | sort -u
done >"$root/usr/share/assay/packages" || true
if ((debian)); then dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Package}=${Version}\n' >>"$root/usr/share/assay/packages"; fi
chmod -R u+rwX,go+rX "$root"

echo "$name / $root" >"$out/images.txt"
(cd "$hack/images" && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go run -trimpath . -list "$out/images.txt" -root "$repo" -out "$out")
archive=${name//\//-}.tar
if ((load)); then
	mkdir -p "$work/images"
	ln -f "$out/$archive" "$work/images/$archive"
fi
if ((load)) && [[ -n $(docker ps -q --filter "label=io.x-k8s.kind.cluster=$CLUSTER" 2>/dev/null) ]]; then
	"$hack/images/load.sh" cluster "$out"
elif ((load)); then
	say "no cluster $CLUSTER runs here, so that no node has the image; kubectl assay run --local takes it from $work/images"
fi
say "image: $name:dev, with $(find "$root/usr/local/bin" -type f | wc -l) programs in /usr/local/bin"
