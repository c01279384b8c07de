package protocol

// This is how a pod's files get into the store of its experiment's results. Directive.HandOver asks
// for it, and it begins when no process of the system runs any more:
//
//	POST /v1/upload  Upload -> Ticket: a presigned request for that one object, with which the agent puts it into the store itself. No pod has credentials.
//	POST /v1/keep    <- a part of a file, PartLimit bytes and no fewer but for the last, described by the query: name, size, sha256, part (from 0). For what cannot be
//	                 put into the store, which is down or full: the manager keeps it in the cluster and stores it later.
//
// It has more errors than the rest of the package. 404: the trial has no store. 424: the manager
// has no way to presign (upload), so that it keeps the file. 507: the cluster has no room for the
// file either.

// PartLimit is the size of the parts that the manager keeps.
const PartLimit = 900 << 10

const (
	// UploadLimit bounds a file that is handed over, packed.
	UploadLimit = 256 << 20
	// KeepLimit bounds a log that is kept in the cluster, packed. The manager keeps the end of a
	// longer log.
	KeepLimit = 4 << 20
	// ClientResultLimit bounds a client's packed results if the trial has a store: then they are
	// kept in parts.
	ClientResultLimit = 32 << 20
)

const (
	// ScriptTableLimit is how many bytes are read of the one file with a script's results.
	ScriptTableLimit = 256 << 10
	// ScriptFileLimit is how many bytes are read of each file if there are several.
	ScriptFileLimit = 4 << 20
)

// ClientResultFile is the name under which a client's packed results are handed over.
const ClientResultFile = "result.json.gz"

const (
	// CollectedFile is the name under which a pod hands over its collected files, and under which
	// the manager keeps them.
	CollectedFile = "files.tar.gz"
	// CollectedFolder and LogsFolder are the folders in it: the processes' own files, by their
	// paths below OutDir, and the ends of streams.
	CollectedFolder = "out/"
	LogsFolder      = "logs/"
	// LeftOutFile in it has a line for each missing file, with the reason.
	LeftOutFile = "left-out.txt"
	// CollectedLimit bounds the packs of all pods of a trial without a store: one ConfigMap keeps
	// them.
	CollectedLimit = 900 << 10
)

// Upload is one file that a pod hands over.
type Upload struct {
	// Name in the pod's folder: lower-case letters, digits, dashes and dots, ending in .gz.
	Name string `json:"name"`
	// Size in bytes, and SHA256 in hexadecimal.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Ticket is a request that its bearer may make until it expires, a few minutes after it was made.
type Ticket struct {
	Method string            `json:"method"`
	URL    string            `json:"url"`
	Header map[string]string `json:"header,omitempty"`
	// CA of the store's server in PEM; empty: the server has no CA of its own.
	CA string `json:"ca,omitempty"`
}
