// Package wire has the messages of package message in the form of Cap'n Proto.
package wire

import (
	"errors"
	"fmt"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
)

// Write fills a message.
func Write(to Message, m message.Message) error {
	switch m := m.(type) {
	case *message.Proposal:
		return writeProposal(to, m)
	case *message.Vote:
		v, err := to.NewVote()
		if err != nil {
			return err
		}
		v.SetPhase(uint8(m.Phase))
		v.SetView(uint64(m.View))
		return errors.Join(v.SetBlock(m.Block[:]), v.SetSignature(m.Signature))
	case *message.Announce:
		return writeQC(to.NewAnnounce, m.QC)
	case *message.NewView:
		v, err := to.NewNewView()
		if err != nil {
			return err
		}
		v.SetView(uint64(m.View))
		v.SetAsk(m.Ask)
		return errors.Join(writeQC(v.NewHighQC, m.HighQC), writeQC(v.NewCommitQC, m.CommitQC))
	case *message.Fetch:
		f, err := to.NewFetch()
		if err != nil {
			return err
		}
		f.SetAbove(uint64(m.Above))
		return f.SetBlock(m.Block[:])
	case *message.Blocks:
		b, err := to.NewBlocks()
		if err != nil {
			return err
		}
		return errors.Join(writeBlocks(b.NewBlocks, m.Blocks), writeQC(b.NewCertificate, m.QC))
	case *message.Forward:
		return writeCommands(to.NewForward, m.Commands)
	}
	return fmt.Errorf("%T is no message", m)
}

func writeProposal(to Message, m *message.Proposal) error {
	p, err := to.NewProposal()
	if err != nil {
		return err
	}
	b, err := p.NewBlock()
	if err != nil {
		return err
	}
	return errors.Join(writeBlock(b, m.Block), writeBlocks(p.NewAncestors, m.Ancestors))
}

// writeQC writes a certificate. It writes none if qc is nil.
func writeQC(place func() (Certificate, error), qc *message.QC) error {
	if qc == nil {
		return nil
	}
	c, err := place()
	if err != nil {
		return err
	}
	c.SetPhase(uint8(qc.Phase))
	c.SetView(uint64(qc.View))
	signers, err := c.NewSigners(int32(len(qc.Signers)))
	if err != nil {
		return err
	}
	for i, s := range qc.Signers {
		signers.Set(i, s)
	}
	return errors.Join(c.SetBlock(qc.Block[:]), c.SetSignature(qc.Signature))
}

func writeBlock(to Block, b *message.Block) error {
	to.SetView(uint64(b.View))
	return errors.Join(writeCommands(to.NewCommands, b.Commands), writeQC(to.NewJustify, b.Justify))
}

func writeBlocks(place func(int32) (Block_List, error), blocks []*message.Block) error {
	list, err := place(int32(len(blocks)))
	if err != nil {
		return err
	}
	for i, b := range blocks {
		if err := writeBlock(list.At(i), b); err != nil {
			return err
		}
	}
	return nil
}

func writeCommands(place func(int32) (Command_List, error), commands []message.Command) error {
	list, err := place(int32(len(commands)))
	if err != nil {
		return err
	}
	for i, c := range commands {
		if err := WriteCommand(list.At(i), c); err != nil {
			return err
		}
	}
	return nil
}

// WriteCommand fills a command.
func WriteCommand(to Command, c message.Command) error {
	to.SetClient(c.Client)
	to.SetSequence(c.Sequence)
	return to.SetPayload(c.Payload)
}
