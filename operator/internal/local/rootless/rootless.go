// Package rootless lets an ordinary user make pods, in a user namespace of that user. The command
// starts itself again in the namespace:
//
//	the user's process                 in new namespaces of users, mounts and processes
//	Run --- clone ------------------>  Continue(Waiting): waits for the map of users
//	    --- newuidmap, newgidmap --->
//	    --- "mapped" by a pipe ----->  executes the command again, which makes it root there
//	                                   Continue(Entered): mounts /proc; the verb runs
//	    <-- exit code --------------
//
// Root in the namespace is the user outside, so its files belong to the user. All other users in
// the namespace are from the range that /etc/subuid gives the user.
//
// The verb is the first process of its namespace of processes. When it ends, for any reason, the
// kernel kills all processes of pods. Mounts and networks end with their last process, so that a
// crash leaves only files. The verb ends when its pipe is closed: its parent has died.
package rootless

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Variable is the environment variable that names the step of the command. Empty: it has not
// entered a namespace.
const Variable = "ASSAY_USER_NAMESPACE"

// The steps of a command that has entered a namespace.
const (
	// Waiting: the process has no users yet.
	Waiting = "waiting"
	// Entered: the process is root in its namespace.
	Entered = "entered"
)

// Users is how many users an installation needs: root, and all users that a pod may name. Agents
// and Systems run as the users 65532 and 65533 by default.
const Users = 1 << 16

// span is a range of users, or groups, of the machine.
type span struct{ first, count uint32 }

// spansOf returns the ranges of a user in a file such as /etc/subuid, whose lines are
// NAME:FIRST:COUNT. NAME may be the user's number.
func spansOf(file io.Reader, name, number string) ([]span, error) {
	var all []span
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		parts := strings.Split(strings.TrimSpace(lines.Text()), ":")
		if len(parts) != 3 || parts[0] != name && parts[0] != number {
			continue
		}
		first, err := strconv.ParseUint(parts[1], 10, 32)
		if err != nil {
			continue // newuidmap skips such lines, too
		}
		count, err := strconv.ParseUint(parts[2], 10, 32)
		if err != nil || count == 0 {
			continue
		}
		all = append(all, span{uint32(first), uint32(count)})
	}
	return all, lines.Err()
}

// mapping returns the arguments of newuidmap after the process. User own becomes root in the
// namespace. The users from 1 on come from the spans, in their order. It fails if the spans have
// too few.
func mapping(own uint32, spans []span) (args []string, err error) {
	args = append(args, "0", strconv.FormatUint(uint64(own), 10), "1")
	next := uint32(1)
	for _, s := range spans {
		if next == Users {
			break
		}
		n := min(s.count, Users-next)
		for _, number := range []uint32{next, s.first, n} {
			args = append(args, strconv.FormatUint(uint64(number), 10))
		}
		next += n
	}
	if next < Users {
		return nil, fmt.Errorf("%d of %d", next-1, Users-1)
	}
	return args, nil
}
