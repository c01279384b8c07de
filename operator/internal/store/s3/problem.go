package s3

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
	"assay.dev/assay/operator/internal/store"
)

// codes of S3 errors, by what the owner must do about them. Servers differ in the codes that they
// use.
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
func (s *Bucket) explain(err error) error {
	if err == nil {
		return nil
	}
	var known *store.Problem
	if errors.As(err, &known) || errors.Is(err, store.ErrNotFound) || errors.Is(err, context.Canceled) {
		return err
	}
	p := &store.Problem{Reason: v1alpha1.ReasonStoreError, Cause: err}
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

// remedies say, by reason, what the owner can do.
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

// plain is the innermost error's text: the text around it changes with every request.
func plain(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
