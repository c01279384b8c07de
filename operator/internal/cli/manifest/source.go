package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"assay.dev/assay/operator/internal/cli/session"
	"assay.dev/assay/operator/internal/manager/admit"
)

const (
	// fetchTimeout for one URL.
	fetchTimeout = 30 * time.Second
	// fetchLimit is the largest answer of a URL that is read, in bytes. An API server takes 1.5 MB.
	fetchLimit = 4 << 20
)

// extensions are those of the files of a folder that are read, as in kubectl.
var extensions = []string{".yaml", ".yml", ".json"}

func isURL(path string) bool {
	return strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://")
}

// source is one file to read. inFolder is true if the user named its folder.
type source struct {
	path     string
	inFolder bool
}

// expand replaces folders by their files. A path that is named twice counts once, since completion
// in a shell parses flags twice.
func expand(paths []string) ([]source, error) {
	var files []source
	for i, path := range paths {
		if slices.Contains(paths[:i], path) {
			continue
		}
		if path == "-" || isURL(path) {
			files = append(files, source{path: path})
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, session.NamedFile(fmt.Errorf("read -f %s: %w%s", path, err, scheme(path)))
		}
		if !info.IsDir() {
			files = append(files, source{path: path})
			continue
		}
		inside, err := filesOf(path)
		if err != nil {
			return nil, fmt.Errorf("read -f %s: %w", path, err)
		}
		if len(inside) == 0 {
			return nil, fmt.Errorf("read -f %s: the folder has no file that ends in .yaml, .yml or .json", path)
		}
		for _, file := range inside {
			files = append(files, source{path: file, inFolder: true})
		}
	}
	return files, nil
}

// scheme returns a note for a path that looks like a URL: only http and https can be read.
func scheme(path string) string {
	if strings.Contains(path, "://") {
		return "; of URLs, http and https can be read"
	}
	return ""
}

// filesOf returns the files of a folder that may hold objects, in the order of their names.
func filesOf(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains(extensions, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	return files, nil
}

// load reads one file, URL, or stdin.
func load(ctx context.Context, path string, stdin io.Reader) ([]byte, error) {
	var data []byte
	var err error
	switch {
	case path == "-":
		data, err = io.ReadAll(stdin)
	case isURL(path):
		data, err = fetch(ctx, path)
	default:
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read -f %s: %w", path, err)
	}
	return data, nil
}

// errNotFound says that the server has no such file.
var errNotFound = errors.New("404 Not Found")

// fetch reads a URL.
func fetch(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotFound:
		return nil, errNotFound
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the server answers %s", response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, fetchLimit+1))
	if err == nil && len(data) > fetchLimit {
		err = fmt.Errorf("it is larger than %d bytes, hence no Experiment", fetchLimit)
	}
	return data, err
}

// readBesideURL reads missing Systems from systems/NAME.yaml beside the Experiment's URL. A System
// without such a file stays missing.
func (s *Set) readBesideURL(ctx context.Context, experiment string) error {
	base, err := url.Parse(experiment)
	if err != nil {
		return fmt.Errorf("read -f %s: %w", experiment, err)
	}
	for _, folder := range []string{"systems/", "../systems/"} {
		s.looked = append(s.looked, base.ResolveReference(&url.URL{Path: folder}).String())
		for _, name := range s.Missing() {
			address := base.ResolveReference(&url.URL{Path: folder + name + ".yaml", RawQuery: base.RawQuery}).String()
			data, err := fetch(ctx, address)
			if errors.Is(err, errNotFound) {
				continue
			}
			if err != nil {
				return fmt.Errorf("look for System %s beside the Experiment, at %s: %w", name, address, err)
			}
			documents, problems := admit.Documents(data, address)
			s.problems = append(s.problems, problems...)
			for _, d := range documents {
				s.addMissing(ctx, d)
			}
		}
	}
	return nil
}
