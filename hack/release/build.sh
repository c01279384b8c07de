#!/usr/bin/env bash
# Builds all files of a release into .work/release, and publishes nothing:
#
#   kubectl-assay-OS-ARCH.tar.gz       the plugin, and .cdx.json, what is in it (CycloneDX)
#   assay-IMAGE-ARCH.tar               the images, and .cdx.json
#   assay-VERSION.tgz                  the chart, which names the images of this version
#   install.yaml                       its objects with default values, for kubectl apply -f
#   assay.yaml                         the plugin's manifest for krew
#   checksums.txt                      SHA-256 of all of them
#   checksums.txt.sig                  with SIGNING_KEY: its signature
#
# usage: build.sh VERSION
# Inputs:  VERSION as v0.2.0; PLATFORMS of the plugin, ARCHES and IMAGES of the images; REGISTRY of
#          the images in the chart; RELEASE_URL, where the files will be; SIGNING_KEY, a file with
#          a private key (PEM, ECDSA P-256).
# Changes: .work/release, .work/bin.
. "$(dirname "${BASH_SOURCE[0]}")/../cluster/lib.sh"

version=${1:?usage: build.sh VERSION, as v0.2.0}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || die "$version is no version: want v0.2.0 or v0.2.0-rc.1"
PLATFORMS=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
ARCHES=${ARCHES:-amd64 arm64}
IMAGES=${IMAGES:-assay/manager assay/agent assay/basil}
REGISTRY=${REGISTRY:-}
RELEASE_URL=${RELEASE_URL:-https://assay.dev/releases/$version}
# The same commit gives the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$repo" log -1 --format=%ct)}

export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -trimpath"
eval "$("$hack/cluster/tools.sh" helm)"
make_work
out=$work/release
stage=$work/release.part
rm -rf "$out" "$stage"
mkdir -p "$out" "$stage" "$work/bin"
trap 'rm -rf "$stage"' EXIT
cd "$repo"
go build -modfile=hack/tools/publish/go.mod -o "$work/bin/cyclonedx-gomod" github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod

# pack ARCHIVE DIRECTORY: all that is in it, without times and owners of this machine.
pack() { tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$2" -cf - . | gzip -9n >"$1"; }

for platform in $PLATFORMS; do
	os=${platform%/*} arch=${platform#*/}
	name=kubectl-assay-$os-$arch
	say "$name"
	mkdir -p "$stage/$name"
	GOOS=$os GOARCH=$arch go build -ldflags "-s -w -X assay.dev/assay/operator/internal/text/buildinfo.version=$version" -o "$stage/$name/kubectl-assay" ./operator/cmd/kubectl-assay
	cp LICENSE "$stage/$name/"
	pack "$out/$name.tar.gz" "$stage/$name"
	"$work/bin/cyclonedx-gomod" bin -json -noserial -version "$version" -output "$out/$name.cdx.json" "$stage/$name/kubectl-assay" 2>/dev/null ||
		die "cyclonedx-gomod failed for $name"
done

for arch in $ARCHES; do
	say "images for linux/$arch"
	# shellcheck disable=SC2086 # several images
	go -C hack/images run . -list images.txt -list '../../systems/*/images.txt' -root "$repo" -out "$stage/$arch" -arch "$arch" -version "$version" $IMAGES >&2
	for image in $IMAGES; do
		file=${image//\//-}
		mv "$stage/$arch/$file.tar" "$out/$file-$arch.tar"
		mv "$stage/$arch/$file.cdx.json" "$out/$file-$arch.cdx.json"
	done
done

say "chart"
cp -r charts/assay "$stage/chart"
sed -i "/^images:/,/^[a-z]/ { s#^  tag: dev\$#  tag: $version#; s#^  registry: \"\"\$#  registry: \"$REGISTRY\"#; s#^  systemsRegistry: \"\"\$#  systemsRegistry: \"$REGISTRY\"# }" "$stage/chart/values.yaml"
grep -qx "  tag: $version" "$stage/chart/values.yaml" || die "values.yaml has no images.tag that a release could set"
rm -rf "$stage/chart/testdata" "$stage/chart/"*_test.go
SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH helm package "$stage/chart" --version "${version#v}" --app-version "$version" --destination "$out" >/dev/null
helm template assay "$out/assay-${version#v}.tgz" --namespace assay-system --no-hooks | go run ./hack/release -plain -namespace >"$out/install.yaml"

go run ./hack/release -dir "$out" -version "$version" -url "$RELEASE_URL" -krew .krew.yaml -key "${SIGNING_KEY:-}"
say "$(find "$out" -type f | wc -l) files in $out"
