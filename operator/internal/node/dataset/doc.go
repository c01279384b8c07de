// Package dataset keeps directories of data on a node's disk and copies them. It handles only
// files: it knows neither Kubernetes nor the rights of users.
//
// A kept set is a folder named by its key, below the folder that the owner of the cluster gave to a
// namespace:
//
//	KEY/tree/...        the data
//	KEY/manifest.jsonl  its digest, and a line for each file, directory and link
//	.KEY-*              a set that is being kept: renamed to KEY when all of it is on the disk
//
// The digest is a SHA-256 over the sorted lines: path, kind, permissions, size, SHA-256 of the
// content or target of the link. It leaves out times and owners, so that two runs of a recipe can
// have the same digest. Files are cloned where the file system can do that (reflink), else copied.
package dataset
