package protocol

import "time"

// MachineHost is a machine of the trial.
type MachineHost struct {
	IP string `json:"ip"`
	// Names of the machine, its own first.
	Names []string `json:"names"`
}

// MachineConfig is the configuration of a machine that answers SSH. Assay renders it when every
// machine has its address.
type MachineConfig struct {
	// Name of the machine.
	Name string `json:"name"`
	// User of its processes, and the user's home directory.
	User string `json:"user"`
	Home string `json:"home"`
	// Port of SSH.
	Port int `json:"port"`
	// Keys is the directory with the trial's keys.
	Keys string `json:"keys"`
	// Hosts are all machines of the trial, and HostsFile is the file for them. Empty: they are not
	// written.
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
	// the script has succeeded. Other machines have none here.
	Shared []string `json:"shared,omitempty"`
	// Marks to look for in lines of output on this machine.
	Marks []MachineMark `json:"marks,omitempty"`
	// Script that runs on this machine; nil: there is none.
	Script *MachineScript `json:"script,omitempty"`
}

// MarksFile is where the program of a machine writes the marks that it finds, a MarkLine in each
// line.
const MarksFile = RunDir + "/marks.jsonl"

// MaxMarks is how many marks of a machine are kept.
const MaxMarks = 1000

// MachineMark says which lines of output are a mark.
type MachineMark struct {
	Name string `json:"name"`
	// Pattern is a regular expression that the line matches.
	Pattern string `json:"pattern"`
	// File of the line. Empty: the script's output.
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

// MachineScript is the run of an artifact: the command that its authors start on one of the
// machines.
type MachineScript struct {
	// Command with its arguments, and the directory in which it starts. A relative directory is
	// below the home directory.
	Command []string `json:"command"`
	Dir     string   `json:"dir,omitempty"`
	// Deadline after which the script and all its processes on this machine are killed.
	Deadline time.Duration `json:"deadline"`
	// Results is the file with the script's numbers. ResultsTo is the file for the Report, written
	// when the script has ended. Empty: there is none.
	Results   string `json:"results,omitempty"`
	ResultsTo string `json:"resultsTo,omitempty"`
	// HostsTo is a file that gets HostsText before the script starts. Empty: there is none.
	HostsTo   string `json:"hostsTo,omitempty"`
	HostsText string `json:"hostsText,omitempty"`
}
