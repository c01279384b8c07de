package certs

import (
	"bytes"
	"crypto/x509"
	"maps"
	"strings"
	"testing"
	"time"
)

var (
	start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	names = []string{"assay-webhook.assay-system.svc", "assay-coordinator.assay-system.svc"}
	year  = Lifetimes{Authority: 365 * 24 * time.Hour, Certificate: 60 * 24 * time.Hour}
	quick = Lifetimes{Authority: 4 * time.Minute, Certificate: 30 * time.Second}
)

// trusts returns why a client with these authorities rejects the served certificate, or nil.
func trusts(t *testing.T, bundle []byte, data map[string][]byte, now time.Time) error {
	t.Helper()
	leaf, _, err := served(data)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatal("the bundle holds no certificate")
	}
	for _, name := range names {
		if _, err := leaf.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			return err
		}
	}
	return nil
}

// A client has authorities that are a fifth of a lifetime old. Over several lifetimes it accepts
// the served certificate, and the one before the last step, which another manager may still serve.
func TestRenewalIsNeverNoticed(t *testing.T) {
	for name, l := range map[string]Lifetimes{"a year": year, "minutes": quick} {
		t.Run(name, func(t *testing.T) {
			data, err := begin(names, l, start)
			if err != nil {
				t.Fatal(err)
			}
			held, step := [][]byte{data[keyTrusted]}, l.look()
			if l == year {
				step = 24 * time.Hour // steps of a minute would be a million steps
			}
			overlap := int(l.Authority / 5 / step)
			reasons := map[string]int{}
			for now := start; now.Before(start.Add(3 * l.Authority)); now = now.Add(step) {
				next, why, err := renew(data, names, l, now)
				if err != nil {
					t.Fatal(err)
				}
				bundle := held[max(0, len(held)-overlap)]
				if err := trusts(t, bundle, data, now); err != nil {
					t.Fatalf("after %s, a follower: %v", now.Sub(start), err)
				}
				if why != "" {
					reasons[why]++
					data = next
				}
				if err := trusts(t, bundle, data, now); err != nil {
					t.Fatalf("after %s: %v", now.Sub(start), err)
				}
				if n := strings.Count(string(data[keyTrusted]), "BEGIN"); n > 2 {
					t.Fatalf("%d authorities are trusted", n)
				}
				held = append(held, data[keyTrusted])
			}
			if n := reasons["the authority that was announced signs from now on"]; n < 3 {
				t.Errorf("authorities changed %d times in three lifetimes: %v", n, reasons)
			}
			if n := reasons["two thirds of the certificate's lifetime are over"]; n < 8 {
				t.Errorf("certificates were renewed %d times: %v", n, reasons)
			}
			if len(reasons) != 3 {
				t.Errorf("reasons %v: want three", reasons)
			}
		})
	}
}

// Shorter lifetimes also hold for existing certificates. So a shorter lifetime gets rid of a leaked
// key of ten years.
func TestShorterLifetimesHoldAtOnce(t *testing.T) {
	data, err := begin(names, year, start)
	if err != nil {
		t.Fatal(err)
	}
	first := data[keySigning]
	now := start.Add(24 * time.Hour)
	for range 200 {
		next, why, err := renew(data, names, quick, now)
		if err != nil {
			t.Fatal(err)
		}
		if why != "" {
			data = next
		}
		now = now.Add(time.Second)
	}
	if bytes.Equal(data[keySigning], first) {
		t.Error("the old authority still signs after 200 s")
	}
	leaf, _, err := served(data)
	if err != nil {
		t.Fatal(err)
	}
	if lives := leaf.Leaf.NotAfter.Sub(now); lives > quick.Certificate {
		t.Errorf("the certificate lives for another %s", lives)
	}
}

func TestWhatIsNoUseIsMadeAnew(t *testing.T) {
	good, err := begin(names, year, start)
	if err != nil {
		t.Fatal(err)
	}
	other, err := begin(names, year, start)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := begin([]string{"assay-webhook.elsewhere.svc"}, year, start)
	if err != nil {
		t.Fatal(err)
	}
	without := func(key string) map[string][]byte {
		d := maps.Clone(good)
		delete(d, key)
		return d
	}
	with := func(key string, value []byte) map[string][]byte {
		d := maps.Clone(good)
		d[key] = value
		return d
	}
	for name, tc := range map[string]struct {
		data map[string][]byte
		now  time.Time
		want string
	}{
		"empty":                   {nil, start, "tls.crt is missing"},
		"no key":                  {without(keyKey), start, "tls.key is missing"},
		"another key":             {with(keyKey, other[keyKey]), start, "tls.crt"},
		"no authority":            {without(keyTrusted), start, "ca.crt is missing"},
		"nothing in it":           {with(keyTrusted, []byte("x")), start, "ca.crt holds no certificate"},
		"untrusted":               {with(keyTrusted, other[keyTrusted]), start, "unknown authority"},
		"made by another program": {without(keySigning), start, "signing.crt is missing"},
		"signs nothing":           {with(keySigning, good[keyCert]), start, "signing.crt"},
		"for other names":         {elsewhere, start, "is valid for assay-webhook.elsewhere.svc, not"},
		"expired":                 {good, start.Add(2 * year.Authority), "expired"},
		"all well":                {good, start, ""},
	} {
		t.Run(name, func(t *testing.T) {
			next, why, err := renew(tc.data, names, year, tc.now)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" {
				if why != "" {
					t.Errorf("renewed: %s", why)
				}
				return
			}
			if !strings.Contains(why, tc.want) {
				t.Errorf("renewed since %q, want %q", why, tc.want)
			}
			if err := trusts(t, next[keyTrusted], next, tc.now); err != nil {
				t.Errorf("what was made: %v", err)
			}
		})
	}
}

func TestLifetimesAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		l    Lifetimes
		want string
	}{
		"as by default":    {year, ""},
		"nearly nothing":   {Lifetimes{time.Hour, time.Second}, "30s or more"},
		"an old authority": {Lifetimes{time.Hour, time.Hour}, "four times"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.l.Validate()
			if got := err != nil; got != (tc.want != "") || got && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
