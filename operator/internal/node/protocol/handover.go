package protocol

// How a pod's files get into the store of its experiment's results. It is asked of a pod by
// Directive.HandOver, and begins when no process of the system runs any more:
//
//	POST /v1/upload  Upload -> Ticket: a presigned request for that one object, with which the agent puts it into the store itself. No pod has credentials.
//	POST /v1/keep    <- a part of a file, PartLimit bytes and no fewer but for the last, described by the query: name, size, sha256, part (from 0). For what cannot be
//	                 put into the store, which is down or full: the manager keeps it in the cluster and stores it later.
//
// There are errors beyond those of the package. 404: the trial has no store. 424: the manager has
// no way to presign (upload), so that it keeps the file. 507: the cluster has no room for it
// either.

// PartLimit is the size of a part that the manager keeps.
const PartLimit = 900 << 10

const (
	// UploadLimit is the most that one file may have that is handed over, packed.
	UploadLimit = 256 << 20
	// KeepLimit is the most that one log may have, packed, to be kept in the cluster; of longer
	// ones the end is.
	KeepLimit = 4 << 20
	// ClientResultLimit is the most that a client's packed results may have where the trial has a
	// store: they are kept in parts.
	ClientResultLimit = 32 << 20
)

const (
	// ScriptTableLimit is the most that is read of the one file with a script's results, in bytes.
	ScriptTableLimit = 256 << 10
	// ScriptFileLimit is the most that is read of one of several such files.
	ScriptFileLimit = 4 << 20
)

// ClientResultFile is the name under which a client's packed results are handed over.
const ClientResultFile = "result.json.gz"

const (
	// CollectedFile is the name under which a pod's collected files are handed over, and the
	// manager keeps them.
	CollectedFile = "files.tar.gz"
	// CollectedFolder and LogsFolder are the folders in it: the processes' own files, by their
	// paths below OutDir, and the ends of streams.
	CollectedFolder = "out/"
	LogsFolder      = "logs/"
	// LeftOutFile in it has a line for each file that was wanted and is not there, and why.
	LeftOutFile = "left-out.txt"
	// CollectedLimit is the most that the packs of a trial's pods may take together without a
	// store: they are kept in one ConfigMap.
	CollectedLimit = 900 << 10
)

// Upload is one file that a pod hands over.
type Upload struct {
	// Name in the pod's folder: lower-case letters, digits, dashes and dots, ending in .gz.
	Name string `json:"name"`
	// Size in bytes, SHA256 in hexadecimal.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Ticket is a request that its bearer may make until it expires, a few minutes after it was given.
type Ticket struct {
	Method string            `json:"method"`
	URL    string            `json:"url"`
	Header map[string]string `json:"header,omitempty"`
	// CA of the store's server in PEM; empty: it is not one of its own.
	CA string `json:"ca,omitempty"`
}
