// Package machine makes a container a machine that answers SSH, as the machines do that authors of
// artifacts have. A script on one of them reaches the others by ssh and scp under fixed names.
//
// Nothing of that is in the image: no sshd, no key, no capability. The container's first process is
// the launcher, as in every container of a trial. The launcher starts this program, which answers
// SSH with the keys of the trial (Server), and runs the artifact's script on the machine that has
// one (Script):
//
//	launcher (process 1) -- machine --+-- bash -c 'nohup server &'    a session of SSH
//	                                  +-- ./run_exp1.sh               the script
//
// Processes that sessions leave behind live on, as on a machine: they become children of the
// launcher when the session is over. When a fault kills the machine, the launcher kills all of it,
// SSH included. When the machine is back, this program starts anew, and nothing from before runs,
// as after a boot.
//
// A script may kill all processes of its user. On a real machine sshd belongs to root and survives
// that. Here the launcher starts this program again (launcher.Start.Respawn).
package machine
