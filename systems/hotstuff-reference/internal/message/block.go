// Package message has the data that replicas of HotStuff exchange: nodes of the tree (called blocks
// here, since a node is also a machine), quorum certificates, and messages.
//
// Names follow Yin et al., "HotStuff: BFT Consensus with Linearity and Responsiveness", PODC 2019;
// algorithms and lines are those of its full version, arXiv:1803.05069.
//
// All values are immutable: replicas of a simulation share them.
package message

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// View numbers views from 1. Genesis is of view 0.
type View uint64

// Digest names a block: SHA-256 of its content.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:4]) }

// CommandID names a command.
type CommandID struct{ Client, Sequence uint64 }

// Command of a client. Replicas execute only one command with each name.
type Command struct {
	CommandID
	Payload []byte
}

// Size is roughly how many bytes the command takes in a message: the payload, the name, and a
// pointer.
func (c Command) Size() int { return len(c.Payload) + 24 }

// Phase of a vote. The basic protocol has three, the chained one has one.
type Phase uint8

// The phases, in the order of the basic protocol (Algorithm 2).
const (
	Generic Phase = iota + 1
	Prepare
	PreCommit
	Commit
)

// QC is a quorum certificate: n-f votes for one block in one phase of one view (Algorithm 1, lines
// 15 to 20).
type QC struct {
	Phase     Phase
	View      View
	Block     Digest
	Signers   []uint16 // ascending
	Signature []byte   // as the scheme combines it
}

// Block is a node of the tree. Its parent is the block that Justify certifies: leaders create
// leaves only below highQC.node or genericQC.node (Algorithm 2, line 5; Algorithm 3, line 10).
//
// In Algorithm 3 blank nodes fill the branch up to a height that is the view's number (line 2).
// Here the view is the height, and there are no blank nodes. In the sense of lines 17 to 21, b is
// the parent of b* exactly if Justify certifies b and b's view is one less.
type Block struct {
	View     View
	Commands []Command
	Justify  *QC // nil only for genesis

	digest Digest
	size   int
}

// NewBlock makes a block.
func NewBlock(view View, commands []Command, justify *QC) *Block {
	b := &Block{View: view, Commands: commands, Justify: justify, size: blockOverhead}
	h := sha256.New()
	var buf []byte
	buf = binary.BigEndian.AppendUint64(buf, uint64(view))
	if justify != nil {
		buf = appendText(buf, justify.Phase, justify.View, justify.Block)
		b.size += len(justify.Signature) + 2*len(justify.Signers)
	}
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(commands)))
	h.Write(buf)
	for _, c := range commands {
		buf = binary.BigEndian.AppendUint64(buf[:0], c.Client)
		buf = binary.BigEndian.AppendUint64(buf, c.Sequence)
		buf = binary.BigEndian.AppendUint64(buf, uint64(len(c.Payload)))
		h.Write(buf)
		h.Write(c.Payload)
		b.size += c.Size()
	}
	h.Sum(b.digest[:0])
	return b
}

// blockOverhead is how many bytes a block takes beyond its commands and its certificate.
const blockOverhead = 128

// Digest names the block.
func (b *Block) Digest() Digest { return b.digest }

// Size is roughly how many bytes the block takes, in memory and in a message.
func (b *Block) Size() int { return b.size }

// Genesis is the root of every tree, and GenesisQC certifies it without signatures.
var (
	Genesis   = NewBlock(0, nil, nil)
	GenesisQC = &QC{Block: Genesis.Digest()}
)

// VoteText is the text that a vote signs (Algorithm 1, line 9).
func VoteText(phase Phase, view View, block Digest) []byte {
	return appendText([]byte("HotStuff vote"), phase, view, block)
}

func appendText(to []byte, phase Phase, view View, block Digest) []byte {
	to = append(to, byte(phase))
	to = binary.BigEndian.AppendUint64(to, uint64(view))
	return append(to, block[:]...)
}
