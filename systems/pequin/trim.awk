# Cuts protocols and benchmarks that are not built out of the artifact's store/server.cc and
# store/benchmark/async/benchmark.cc: the lines that include them, and the case of the switch that
# makes them. Nothing else of the file changes, so a flag that names one of them ends in the
# artifact's own NOT_REACHABLE.
#
# usage: awk -v includes=REGEX -v cases=REGEX -f trim.awk FILE
#   includes  matches the path of a header to drop
#   cases     matches the whole name of a case to drop, such as PROTO_HOTSTUFF

# name is the constant of a line "case NAME:" for a protocol or benchmark, or "" of any other line.
function name(line) {
	if (line !~ /^[ \t]*case (PROTO|BENCH)_[A-Z_0-9]+:/) return ""
	sub(/^[ \t]*case /, "", line)
	sub(/:.*/, "", line)
	return line
}

$1 == "#include" {
	path = $2
	gsub(/["<>]/, "", path)
	if (path ~ "^(" includes ")$") next
}
# The switches that make a protocol or a benchmark; others only set flags.
/server = new|client = new|BenchmarkClient \*bench;|Declare Protocol/ { making = 1 }
# A case may hold a switch of its own, whose default is its last case.
skipping && /switch *\(/ { inner++ }
making && /^[ \t]*default:/ { if (inner > 0) inner--; else skipping = making = 0 }
making && name($0) != "" { skipping = name($0) ~ "^(" cases ")$" }
!skipping
