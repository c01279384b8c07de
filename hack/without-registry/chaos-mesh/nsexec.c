/*
 * nsexec: runs a command in namespaces of another process, as chaos-daemon calls it. Stands in for the program of that name of the
 * Chaos Mesh project, which is published as a binary only.
 *
 *   nsexec [-l] [-n|-i|-p|-m FILE]... -- COMMAND [ARGUMENT...]
 *
 * FILE is /proc/PID/ns/net, ipc, pid or mnt. -l asks for COMMAND to be found in the caller's file system, which it is unless there is -m;
 * both together (IOChaos and BlockChaos do that) would need a second mount namespace and are refused. Ends as COMMAND ends.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;

static void forward(int sig) { kill(child, sig); }

int main(int argc, char *argv[]) {
	int fds[16], n = 0, local = 0, mount = 0, pids = 0, option;
	while ((option = getopt(argc, argv, "+ln:i:p:m:")) != -1) {
		if (option == 'l') { local = 1; continue; }
		if (option == '?' || n == 16) errx(125, "usage: nsexec [-l] [-n|-i|-p|-m FILE]... -- COMMAND [ARGUMENT...]");
		mount |= option == 'm';
		pids |= option == 'p';
		/* All are opened before one is entered: behind a mount namespace, /proc is another. */
		if ((fds[n++] = open(optarg, O_RDONLY | O_CLOEXEC)) < 0) err(125, "%s", optarg);
	}
	if (optind == argc) errx(125, "no command");
	if (local && mount) errx(125, "-l together with -m is not implemented");
	for (int i = 0; i < n; i++)
		if (setns(fds[i], 0) != 0) err(125, "setns");
	if (pids) { /* only a child is in the PID namespace */
		int sigs[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGCONT, SIGUSR1, SIGUSR2}, status;
		sigset_t all, before;
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, &before); /* nothing arrives before there is somebody to tell */
		if ((child = fork()) < 0) err(125, "fork");
		if (child > 0) {
			for (unsigned i = 0; i < sizeof sigs / sizeof *sigs; i++) signal(sigs[i], forward);
			sigprocmask(SIG_SETMASK, &before, NULL);
			while (waitpid(child, &status, 0) < 0) continue;
			return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	execvp(argv[optind], argv + optind);
	err(127, "%s", argv[optind]);
}
