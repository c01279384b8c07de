package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"assay.dev/assay/operator/internal/node/dataset"
)

const datasetUsage = "usage: agent dataset keep|copy|remove|directories [flags]"

// runDataset carries out one command on data sets. It calls no other program: the manager reads the
// result in its termination message.
func runDataset(args []string) error {
	if len(args) == 0 {
		return errors.New(datasetUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	flags := flag.NewFlagSet("dataset "+args[0], flag.ContinueOnError)
	result := flags.String("result", "/dev/termination-log", "file for what was done, as JSON")
	root := flags.String("root", "", "folder of the namespace's data sets; of directories: of all namespaces'")
	key := flags.String("key", "", "name of the data set in the folder")
	switch args[0] {
	case "keep":
		from := flags.String("from", "", "directory that the recipe filled")
		limit := flags.Int64("limit", 0, "most bytes that it may hold")
		perNode := flags.Bool("per-node", false, "each node has bytes of its own: keep a set that is there, whatever its bytes are")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		began := time.Now()
		kept, err := dataset.Keep(ctx, *from, *root, *key, *limit, *perNode)
		if err != nil {
			return err
		}
		kept.Milliseconds = time.Since(began).Milliseconds()
		return report(*result, kept)
	case "copy":
		r, err := copyRequest(flags, args[1:], root, key)
		if err != nil {
			return err
		}
		began := time.Now()
		copied, err := dataset.Copy(ctx, r)
		if err != nil {
			return err
		}
		copied.Milliseconds = time.Since(began).Milliseconds()
		return report(*result, copied)
	case "remove":
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return dataset.Remove(*root, *key)
	case "directories":
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return directories(ctx, *root, flags.Args())
	default:
		return errors.New(datasetUsage)
	}
}

// copyRequest reads the flags of copy.
func copyRequest(flags *flag.FlagSet, args []string, root, key *string) (r dataset.Request, err error) {
	var digests []string
	flags.Func("digest", "digest that the set must have, or NODE=DIGEST for the node NODE_NAME; once for each node", func(text string) error {
		digests = append(digests, text)
		return nil
	})
	var parts []string
	flags.Func("sub-path", "POD=DIRECTORY: the pod of this host name copies only this directory of the set; once for each pod; default: the whole set", func(text string) error {
		parts = append(parts, text)
		return nil
	})
	flags.StringVar(&r.To, "to", "", "directory for the copy")
	flags.StringVar(&r.Done, "done", "", "file that says that the copy was made")
	flags.BoolVar(&r.Content, "content", false, "compare the hash of every file of the copy")
	if err := flags.Parse(args); err != nil {
		return r, err
	}
	r.Root, r.Key = *root, *key
	if r.Digest, err = dataset.DigestOf(os.Getenv("NODE_NAME"), digests); err != nil {
		return r, fmt.Errorf("data set %s: %w", r.Key, err)
	}
	if len(parts) == 0 {
		return r, nil
	}
	pod, err := os.Hostname()
	if err != nil {
		return r, fmt.Errorf("data set %s: which pod this is: %w", r.Key, err)
	}
	if r.SubPath, err = dataset.SubPathOf(pod, parts); err != nil {
		return r, fmt.Errorf("data set %s: %w", r.Key, err)
	}
	return r, nil
}

// report writes the result to a file that the manager reads.
func report(file string, done any) error {
	text, err := json.Marshal(done)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// directories makes a folder for each namespace. The group of the folder may write to it, and other
// users cannot read it. directories returns when ctx is done: a DaemonSet runs it on every node.
func directories(ctx context.Context, root string, namespaces []string) error {
	for _, n := range namespaces {
		dir := filepath.Join(root, n)
		if filepath.Base(dir) != n {
			return fmt.Errorf("%q is no name of a namespace", n)
		}
		if err := os.Mkdir(dir, 0o770); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := os.Chmod(dir, 0o770); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}
