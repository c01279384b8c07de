# shellcheck shell=bash
# Sourced by the scripts that take pictures of pages.

# find_chromium sets the variable chromium to the browser's program, or ends the script and says
# what to install.
find_chromium() {
	chromium=$(command -v chromium || command -v google-chrome || true)
	if [[ -z $chromium ]]; then
		echo "$(basename "$0" .sh): no Chromium: on Debian, apt-get install chromium" >&2
		exit 1
	fi
}
