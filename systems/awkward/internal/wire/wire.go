// Package wire is the protocol between the processes of the awkward system, over TCP, with one line
// for each message:
//
//	client  -> replica   op <client> <seq>
//	replica -> client    ok <replica> <client> <seq> <signature>
//	replica -> replica   ping <from> <nonce>
//	replica -> replica   pong <replica> <nonce> <signature>
//
// A replica that still loads answers operations with Garbage: the original systems do not reject
// early requests, but mishandle them. Signatures detect an answer from the wrong replica, or with
// another trial's keys, at once.
package wire

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
)

// Garbage is the answer of a replica that has not finished loading.
const Garbage = "\x7fELF\x02\x01 not loaded"

// MaxLine is longer than any message.
const MaxLine = 512

// Op asks a replica to carry out one operation.
type Op struct {
	Client int
	Seq    uint64
}

// String is the request.
func (o Op) String() string { return fmt.Sprintf("op %d %d", o.Client, o.Seq) }

// ParseOp reads a request.
func ParseOp(line string) (Op, error) {
	var o Op
	if _, err := fmt.Sscanf(line, "op %d %d", &o.Client, &o.Seq); err != nil {
		return Op{}, fmt.Errorf("parse operation: %w", err)
	}
	return o, nil
}

// Reply is the signed answer of a replica.
func (o Op) Reply(replica int, key ed25519.PrivateKey) string {
	return seal(o.reply(replica), key)
}

// CheckReply says what is wrong with an answer that the replica should have sent.
func (o Op) CheckReply(line string, replica int, key ed25519.PublicKey) error {
	return open(line, o.reply(replica), key)
}

func (o Op) reply(replica int) string {
	return fmt.Sprintf("ok %d %d %d", replica, o.Client, o.Seq)
}

// Ping asks a replica for its identity.
type Ping struct {
	From  int
	Nonce uint64
}

// String is the request.
func (p Ping) String() string { return fmt.Sprintf("ping %d %d", p.From, p.Nonce) }

// ParsePing reads a request.
func ParsePing(line string) (Ping, error) {
	var p Ping
	if _, err := fmt.Sscanf(line, "ping %d %d", &p.From, &p.Nonce); err != nil {
		return Ping{}, fmt.Errorf("parse ping: %w", err)
	}
	return p, nil
}

// Reply is the signed answer of a replica.
func (p Ping) Reply(replica int, key ed25519.PrivateKey) string {
	return seal(p.reply(replica), key)
}

// CheckReply says what is wrong with an answer that the replica should have sent.
func (p Ping) CheckReply(line string, replica int, key ed25519.PublicKey) error {
	return open(line, p.reply(replica), key)
}

func (p Ping) reply(replica int) string { return fmt.Sprintf("pong %d %d", replica, p.Nonce) }

func seal(message string, key ed25519.PrivateKey) string {
	return message + " " + hex.EncodeToString(ed25519.Sign(key, []byte(message)))
}

func open(line, message string, key ed25519.PublicKey) error {
	if len(line) <= len(message)+1 || line[:len(message)+1] != message+" " {
		return fmt.Errorf("expected %q, got %q", message, line)
	}
	signature, err := hex.DecodeString(line[len(message)+1:])
	if err != nil || !ed25519.Verify(key, []byte(message), signature) {
		return fmt.Errorf("the signature of %q was made with another key than that replica's", message)
	}
	return nil
}
