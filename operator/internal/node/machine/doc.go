// Package machine makes a container a machine that answers SSH, like the machines of authors of
// artifacts. A script on one of them reaches the others by ssh and scp under fixed names.
//
// The image needs nothing for that: no sshd, no key, no capability. The container's first process
// is the launcher, as in every container of a trial. The launcher starts this program. It answers
// SSH with the keys of the trial (Server), and runs the artifact's script on the machine that has
// one (Script):
//
//	launcher (process 1) -- machine --+-- bash -c 'nohup server &'    a session of SSH
//	                                  +-- ./run_exp1.sh               the script
//
// Processes that sessions leave behind live on, as on a real machine: they become children of the
// launcher when the session is over. When a fault kills the machine, the launcher kills all its
// processes, this program included. When the machine comes back, this program starts anew, and no
// earlier process runs, as after a boot.
//
// A script may kill all processes of its user. On a real machine sshd belongs to root and survives
// that. Here the launcher starts this program again (launcher.Start.Respawn).
package machine
