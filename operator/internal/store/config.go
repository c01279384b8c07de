package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"sigs.k8s.io/yaml"

	"assay.dev/assay/operator/api/v1alpha1"
)

// Config is one store, as the installer names it: no experiment can change it.
type Config struct {
	// Name that experiments use in spec.results.store.
	Name string `json:"name"`
	// Endpoint is the server's URL, http or https. Empty: that of AWS in the region.
	Endpoint string `json:"endpoint,omitempty"`
	// Region of the bucket. Default: us-east-1, which servers other than AWS mostly take.
	Region string `json:"region,omitempty"`
	// Bucket that exists already.
	Bucket string `json:"bucket"`
	// Prefix of all keys, without a / at its ends. Default: none.
	Prefix string `json:"prefix,omitempty"`
	// PathStyle: the bucket is in the path (https://host/bucket) and not in the host name
	// (https://bucket.host).
	PathStyle bool `json:"pathStyle,omitempty"`
	// Checksums: WhenSupported (default) also has the server check what arrives; WhenRequired
	// leaves that out for servers that refuse such requests. What is stored is read back and
	// compared either way.
	Checksums string `json:"checksums,omitempty"`
}

// The values of Checksums.
const (
	ChecksumsWhenSupported = "WhenSupported"
	ChecksumsWhenRequired  = "WhenRequired"
)

// Installation lists the stores of an installation.
type Installation struct {
	// Default is the store of experiments that name none. Empty: their results stay in the cluster.
	Default string   `json:"default,omitempty"`
	Stores  []Config `json:"stores,omitempty"`
}

// The files in a store's directory: keys of its Secret, and the CA.
const (
	AccessKeyFile    = "accessKeyID"
	SecretKeyFile    = "secretAccessKey"
	SessionTokenFile = "sessionToken"
	CAFile           = "ca.crt"
)

// Registry has the stores of an installation. The zero value has none.
type Registry struct {
	fallback string
	names    []string
	stores   map[string]*S3
}

// Load reads the file that lists the stores; directory/NAME has each store's credentials and CA. No
// file, an empty name, means no stores.
func Load(file, directory string) (*Registry, error) {
	r := &Registry{stores: map[string]*S3{}}
	if file == "" {
		return r, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the list of result stores: %w", err)
	}
	var all Installation
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return nil, fmt.Errorf("read the list of result stores %s: %w", file, err)
	}
	for _, c := range all.Stores {
		if r.stores[c.Name] != nil {
			return nil, fmt.Errorf("the list of result stores %s names %s twice", file, c.Name)
		}
		if r.stores[c.Name], err = NewS3(c, filepath.Join(directory, c.Name)); err != nil {
			return nil, err
		}
		r.names = append(r.names, c.Name)
	}
	if all.Default != "" && r.stores[all.Default] == nil {
		return nil, fmt.Errorf("the list of result stores %s has the default %s, which is none of its stores: %s", file, all.Default, r.describe())
	}
	slices.Sort(r.names)
	r.fallback = all.Default
	return r, nil
}

func (r *Registry) describe() string {
	if len(r.names) == 0 {
		return "there are none"
	}
	return strings.Join(r.names, ", ")
}

// Resolve turns what an experiment asks for into the name of its store: empty for none.
func (r *Registry) Resolve(asked *v1alpha1.Results) string {
	switch {
	case asked != nil && asked.Store == v1alpha1.NoStore:
		return ""
	case asked != nil && asked.Store != "":
		return asked.Store
	case r == nil:
		return ""
	}
	return r.fallback
}

// Get returns the store of a name.
func (r *Registry) Get(name string) (*S3, error) {
	if r == nil || r.stores[name] == nil {
		return nil, &Problem{Reason: v1alpha1.ReasonStoreNotConfigured, Text: r.unknown(name)}
	}
	return r.stores[name], nil
}

// Check is a plan's check of the store that an experiment names.
func (r *Registry) Check(name string) error {
	if name == "" || name == v1alpha1.NoStore || r != nil && r.stores[name] != nil {
		return nil
	}
	return errors.New(r.unknown(name))
}

func (r *Registry) unknown(name string) string {
	if r == nil || len(r.names) == 0 {
		return fmt.Sprintf("there is no result store %q: this installation has none; its owner can add one in the chart's results.stores", name)
	}
	return fmt.Sprintf("there is no result store %q in this installation; it has: %s", name, strings.Join(r.names, ", "))
}

var (
	storeName  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)
	bucketName = regexp.MustCompile(`^[a-z0-9][-a-z0-9.]{1,61}[a-z0-9]$`)
	prefixText = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)
)

func (c *Config) complete() error {
	endpoint, err := url.Parse(c.Endpoint)
	wrong := func(field, value, want string) error {
		return fmt.Errorf("result store %q: %s is %q; %s", c.Name, field, value, want)
	}
	switch {
	case !storeName.MatchString(c.Name) || c.Name == v1alpha1.NoStore:
		return wrong("name", c.Name, "it must be lower-case letters, digits and dashes, 40 at most, and not "+v1alpha1.NoStore)
	case err != nil || c.Endpoint != "" && (endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https"):
		return wrong("endpoint", c.Endpoint, "it must be a URL with http or https and a host, or empty for AWS")
	case endpoint.User != nil || endpoint.RawQuery != "":
		return fmt.Errorf("result store %q: endpoint must not have a user or a query; keys belong into the store's Secret", c.Name)
	case !bucketName.MatchString(c.Bucket):
		return wrong("bucket", c.Bucket, "it must be the name of a bucket")
	case c.Prefix != "" && !prefixText.MatchString(c.Prefix):
		return wrong("prefix", c.Prefix, "it must be words of letters, digits, dots and dashes with / between them")
	case !slices.Contains([]string{"", ChecksumsWhenSupported, ChecksumsWhenRequired}, c.Checksums):
		return wrong("checksums", c.Checksums, "it must be WhenSupported or WhenRequired")
	}
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	return nil
}

// credentialsAge is how long credentials are used before their files are read again: they may be
// renewed at any time.
const credentialsAge = time.Minute

// fileCredentials reads credentials from the files of a mounted Secret.
type fileCredentials struct {
	store, directory string
}

// Retrieve implements aws.CredentialsProvider.
func (f fileCredentials) Retrieve(context.Context) (aws.Credentials, error) {
	read := func(name string) (string, error) {
		text, err := os.ReadFile(filepath.Join(f.directory, name))
		return strings.TrimSpace(string(text)), err
	}
	access, errAccess := read(AccessKeyFile)
	secret, errSecret := read(SecretKeyFile)
	session, errSession := read(SessionTokenFile)
	if errors.Is(errSession, fs.ErrNotExist) {
		errSession = nil
	}
	if err := errors.Join(errAccess, errSecret, errSession); err != nil || access == "" || secret == "" {
		return aws.Credentials{}, &Problem{Reason: v1alpha1.ReasonStoreDenied, cause: err, Text: fmt.Sprintf(
			"store %s has no keys: its Secret must have %s and %s", f.store, AccessKeyFile, SecretKeyFile)}
	}
	return aws.Credentials{AccessKeyID: access, SecretAccessKey: secret, SessionToken: session, Source: "files",
		CanExpire: true, Expires: time.Now().Add(credentialsAge)}, nil //nolint:forbidigo // the SDK compares it with the real clock
}

// Credentials are keys that a caller has at hand.
type Credentials struct{ AccessKeyID, SecretAccessKey, SessionToken string }

// Retrieve implements aws.CredentialsProvider.
func (c Credentials) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken, Source: "given"}, nil
}
