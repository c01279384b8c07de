package protocol

import "time"

// MachineHost is a machine of the trial.
type MachineHost struct {
	IP string `json:"ip"`
	// Names of the machine, its own first.
	Names []string `json:"names"`
}

// MachineConfig is what a machine that answers SSH is told. Assay renders it when every machine has
// its address.
type MachineConfig struct {
	// Name of the machine.
	Name string `json:"name"`
	// User that its processes are, and the user's home directory.
	User string `json:"user"`
	Home string `json:"home"`
	// Port that SSH is answered on.
	Port int `json:"port"`
	// Keys is the directory with the trial's keys.
	Keys string `json:"keys"`
	// Hosts are all machines of the trial, and HostsFile is where they are written to. Empty:
	// nowhere.
	Hosts     []MachineHost `json:"hosts"`
	HostsFile string        `json:"hostsFile,omitempty"`
	// Env of sessions and of the script, NAME=value.
	Env []string `json:"env,omitempty"`
	// OutDir is the folder of the record, and RunDir the folder of files that belong to one life of
	// the pod.
	OutDir string `json:"outDir"`
	RunDir string `json:"runDir"`
	// Boot is a command that runs when the machine comes up. Empty: none.
	Boot []string `json:"boot,omitempty"`
	// Shared are the directories that all machines see. The machine of the script empties them when
	// that has succeeded; others have none here.
	Shared []string `json:"shared,omitempty"`
	// Marks that lines of output on this machine are.
	Marks []MachineMark `json:"marks,omitempty"`
	// Script that runs on this machine; nil: none does.
	Script *MachineScript `json:"script,omitempty"`
}

// MarksFile is where the program of a machine writes the marks that it finds, a MarkLine in each
// line.
const MarksFile = RunDir + "/marks.jsonl"

// MaxMarks is how many marks of a machine are kept.
const MaxMarks = 1000

// MachineMark is a mark that lines of output are.
type MachineMark struct {
	Name string `json:"name"`
	// Pattern is a regular expression that the line matches.
	Pattern string `json:"pattern"`
	// File that the line is written to. Empty: the script prints it.
	File string `json:"file,omitempty"`
}

// MarkLine is a line that was a mark.
type MarkLine struct {
	Name   string            `json:"name"`
	Groups map[string]string `json:"groups,omitempty"`
	Line   string            `json:"line"`
	// MonotonicNanos is when the line was read, on the CLOCK_MONOTONIC of the node.
	MonotonicNanos int64 `json:"monotonicNanos"`
}

// MachineScript is the run of an artifact: what its authors start on one of the machines.
type MachineScript struct {
	// Command with its arguments, and the directory that it starts in; a relative one is below the
	// home directory.
	Command []string `json:"command"`
	Dir     string   `json:"dir,omitempty"`
	// Deadline after which the script and all that it started on this machine are killed.
	Deadline time.Duration `json:"deadline"`
	// Results is the file with the script's numbers, and ResultsTo where a Report of it is written
	// to when the script has ended. Empty: nowhere.
	Results   string `json:"results,omitempty"`
	ResultsTo string `json:"resultsTo,omitempty"`
	// HostsTo is a file that HostsText is written to before the script starts. Empty: none.
	HostsTo   string `json:"hostsTo,omitempty"`
	HostsText string `json:"hostsText,omitempty"`
}
