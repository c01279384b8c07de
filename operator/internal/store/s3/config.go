package s3

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
	"assay.dev/assay/operator/internal/store"
)

// Config is one store, as the installer names it: no experiment can change it.
type Config struct {
	store.Settings `json:",inline"`
	// Endpoint is the server's URL, http or https. Empty: the endpoint of AWS in the region.
	Endpoint string `json:"endpoint,omitempty"`
	// Region of the bucket. Default: us-east-1, which most servers other than AWS accept.
	Region string `json:"region,omitempty"`
	// Bucket that exists already.
	Bucket string `json:"bucket"`
	// Prefix of all keys, without a / at its ends. Default: none.
	Prefix string `json:"prefix,omitempty"`
	// PathStyle: the bucket is in the path (https://host/bucket) and not in the host name
	// (https://bucket.host).
	PathStyle bool `json:"pathStyle,omitempty"`
	// Checksums: WhenSupported (default) also has the server check what arrives; WhenRequired
	// leaves that out for servers that refuse such requests. The store reads objects back and
	// compares them either way.
	Checksums string `json:"checksums,omitempty"`
}

// The values of Checksums.
const (
	ChecksumsWhenSupported = "WhenSupported"
	ChecksumsWhenRequired  = "WhenRequired"
)

// The files in a store's directory: keys of its Secret, and the CA.
const (
	AccessKeyFile    = "accessKeyID"
	SecretKeyFile    = "secretAccessKey"
	SessionTokenFile = "sessionToken"
	CAFile           = "ca.crt"
)

// Open is the store.Open of buckets.
func Open(settings []byte, directory string) (store.Remote, error) {
	var c Config
	if err := yaml.UnmarshalStrict(settings, &c); err != nil {
		return nil, fmt.Errorf("read the settings of a bucket: %w", err)
	}
	return New(c, directory)
}

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][-a-z0-9.]{1,61}[a-z0-9]$`)
	prefixText = regexp.MustCompile(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)
)

func (c *Config) complete() error {
	endpoint, err := url.Parse(c.Endpoint)
	wrong := func(field, value, want string) error {
		return fmt.Errorf("result store %q: %s is %q; %s", c.Name, field, value, want)
	}
	switch {
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
		return aws.Credentials{}, &store.Problem{Reason: v1alpha1.ReasonStoreDenied, Cause: err, Text: fmt.Sprintf(
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
