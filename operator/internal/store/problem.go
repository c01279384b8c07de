package store

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"assay.dev/assay/operator/api/v1alpha1"
)

// ErrNotFound says that there is no object under the key.
var ErrNotFound = errors.New("no such object")

// Problem is why a store does not do what it is asked, in words that stay the same from one attempt
// to the next: they are shown in conditions. Its cause, with what a server adds to each answer, is
// behind Unwrap.
type Problem struct {
	// Reason of the condition, one of v1alpha1.ReasonStore...
	Reason string
	// Text says what is wrong and what to do.
	Text  string
	cause error
}

// Error implements error.
func (p *Problem) Error() string { return p.Text }

// Unwrap gives the cause.
func (p *Problem) Unwrap() error { return p.cause }

// Explain gives the reason and the message of a condition for any error of a store.
func Explain(err error) (reason, message string) {
	var p *Problem
	if errors.As(err, &p) {
		return p.Reason, p.Text
	}
	return v1alpha1.ReasonStoreError, err.Error()
}

func corrupted(key string, cause error) error {
	return &Problem{Reason: v1alpha1.ReasonStoreCorrupted, Text: fmt.Sprintf("object %s is not what was stored: its content does not have its checksum", key), cause: cause}
}

// codes of S3 errors, by what they mean for whoever must act. Servers differ in which they use.
var codes = map[string]string{
	"AccessDenied": v1alpha1.ReasonStoreDenied, "AllAccessDisabled": v1alpha1.ReasonStoreDenied, "AccountProblem": v1alpha1.ReasonStoreDenied,
	"InvalidAccessKeyId": v1alpha1.ReasonStoreDenied, "SignatureDoesNotMatch": v1alpha1.ReasonStoreDenied, "ExpiredToken": v1alpha1.ReasonStoreDenied,
	"InvalidToken": v1alpha1.ReasonStoreDenied, "Forbidden": v1alpha1.ReasonStoreDenied, "XAdminUserNotFound": v1alpha1.ReasonStoreDenied,
	"AuthorizationHeaderMalformed": v1alpha1.ReasonStoreDenied, "RequestTimeTooSkewed": v1alpha1.ReasonStoreDenied,
	"NoSuchBucket": v1alpha1.ReasonStoreBucketMissing, "PermanentRedirect": v1alpha1.ReasonStoreBucketMissing, "InvalidBucketName": v1alpha1.ReasonStoreBucketMissing,
	"QuotaExceeded": v1alpha1.ReasonStoreFull, "XMinioStorageFull": v1alpha1.ReasonStoreFull, "InsufficientStorage": v1alpha1.ReasonStoreFull,
	"NoSpaceLeftOnDevice": v1alpha1.ReasonStoreFull, "XMinioAdminBucketQuotaExceeded": v1alpha1.ReasonStoreFull, "EntityTooLarge": v1alpha1.ReasonStoreFull,
	"BadDigest": v1alpha1.ReasonStoreCorrupted, "XAmzContentSHA256Mismatch": v1alpha1.ReasonStoreCorrupted, "InvalidDigest": v1alpha1.ReasonStoreCorrupted,
}

// explain makes a Problem of an error of the SDK.
func (s *S3) explain(err error) error {
	if err == nil {
		return nil
	}
	var known *Problem
	if errors.As(err, &known) || errors.Is(err, ErrNotFound) || errors.Is(err, context.Canceled) {
		return err
	}
	p := &Problem{Reason: v1alpha1.ReasonStoreError, cause: err}
	where := fmt.Sprintf("store %s (%s)", s.config.Name, s.location)
	var api smithy.APIError
	var answer *smithyhttp.ResponseError
	switch {
	case certificate(err):
		p.Reason = v1alpha1.ReasonStoreCertificate
		p.Text = fmt.Sprintf("%s has a certificate that is not trusted; give its CA in the store's ca", where)
	case unreachable(err):
		p.Reason = v1alpha1.ReasonStoreUnreachable
		p.Text = fmt.Sprintf("%s does not answer; it is tried again", where)
	case errors.As(err, &api) && codes[api.ErrorCode()] != "":
		p.Reason = codes[api.ErrorCode()]
		p.Text = fmt.Sprintf("%s answers %s; %s", where, api.ErrorCode(), remedies[p.Reason])
	case errors.As(err, &answer) && answer.HTTPStatusCode() != 0:
		p.Reason, p.Text = status(where, answer.HTTPStatusCode(), code(api))
	default:
		p.Text = fmt.Sprintf("%s cannot be used: %s", where, plain(err))
	}
	return p
}

// remedies say what to do.
var remedies = map[string]string{
	v1alpha1.ReasonStoreDenied:        "check the keys in the store's Secret and the bucket's policy",
	v1alpha1.ReasonStoreBucketMissing: "make the bucket, or correct bucket, region or pathStyle of the store",
	v1alpha1.ReasonStoreFull:          "make room, or raise the bucket's quota; it is tried again",
	v1alpha1.ReasonStoreCorrupted:     "what arrived is not what was sent; it is sent again",
}

func code(api smithy.APIError) string {
	if api == nil || api.ErrorCode() == "" {
		return ""
	}
	return " " + api.ErrorCode()
}

// status judges an answer by its HTTP status: a HEAD has no body that could say more.
func status(where string, code int, name string) (reason, text string) {
	reason = v1alpha1.ReasonStoreError
	switch {
	case code == http.StatusForbidden || code == http.StatusUnauthorized:
		reason = v1alpha1.ReasonStoreDenied
	case code == http.StatusNotFound || code == http.StatusMovedPermanently:
		reason = v1alpha1.ReasonStoreBucketMissing
	case code == http.StatusInsufficientStorage:
		reason = v1alpha1.ReasonStoreFull
	case code == http.StatusServiceUnavailable || code == http.StatusBadGateway || code == http.StatusGatewayTimeout:
		return v1alpha1.ReasonStoreUnreachable, fmt.Sprintf("%s answers %d%s; it is tried again", where, code, name)
	}
	text = fmt.Sprintf("%s answers %d%s", where, code, name)
	if remedy := remedies[reason]; remedy != "" {
		text += "; " + remedy
	}
	return reason, text
}

func certificate(err error) bool {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid) ||
		strings.Contains(err.Error(), "HTTP response to HTTPS client")
}

func unreachable(err error) bool {
	var network net.Error
	var send *smithyhttp.RequestSendError
	return errors.As(err, &network) || errors.As(err, &send) || errors.Is(err, context.DeadlineExceeded)
}

// plain is the innermost error's text: what is around it changes with every request.
func plain(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
