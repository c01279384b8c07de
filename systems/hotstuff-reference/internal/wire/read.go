package wire

import (
	"bytes"
	"errors"
	"fmt"

	"assay.dev/assay/systems/hotstuff-reference/internal/message"
)

// Read returns a message. It shares no memory with the message that was read.
func Read(from Message) (message.Message, error) {
	m, err := read(from)
	if err != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	return m, nil
}

func read(from Message) (message.Message, error) {
	switch from.Which() {
	case Message_Which_proposal:
		return readProposal(from)
	case Message_Which_vote:
		v, err := from.Vote()
		if err != nil {
			return nil, err
		}
		block, err := readDigest(v.Block)
		signature, err2 := v.Signature()
		return &message.Vote{
			Phase: message.Phase(v.Phase()), View: message.View(v.View()), Block: block, Signature: bytes.Clone(signature),
		}, errors.Join(err, err2)
	case Message_Which_announce:
		qc, err := readQC(from.HasAnnounce(), from.Announce)
		return &message.Announce{QC: qc}, err
	case Message_Which_newView:
		v, err := from.NewView()
		if err != nil {
			return nil, err
		}
		high, err := readQC(v.HasHighQC(), v.HighQC)
		commit, err2 := readQC(v.HasCommitQC(), v.CommitQC)
		return &message.NewView{View: message.View(v.View()), HighQC: high, CommitQC: commit, Ask: v.Ask()}, errors.Join(err, err2)
	case Message_Which_fetch:
		f, err := from.Fetch()
		if err != nil {
			return nil, err
		}
		block, err := readDigest(f.Block)
		return &message.Fetch{Block: block, Above: message.View(f.Above())}, err
	case Message_Which_blocks:
		b, err := from.Blocks()
		if err != nil {
			return nil, err
		}
		blocks, err := readBlocks(b.Blocks)
		qc, err2 := readQC(b.HasCertificate(), b.Certificate)
		return &message.Blocks{Blocks: blocks, QC: qc}, errors.Join(err, err2)
	case Message_Which_forward:
		commands, err := readCommands(from.Forward)
		return &message.Forward{Commands: commands}, err
	}
	return nil, fmt.Errorf("its kind is %v", from.Which())
}

func readProposal(from Message) (message.Message, error) {
	p, err := from.Proposal()
	if err != nil {
		return nil, err
	}
	b, err := p.Block()
	if err != nil {
		return nil, err
	}
	block, err := readBlock(b)
	ancestors, err2 := readBlocks(p.Ancestors)
	return &message.Proposal{Block: block, Ancestors: ancestors}, errors.Join(err, err2)
}

func readDigest(from func() ([]byte, error)) (d message.Digest, err error) {
	b, err := from()
	if err == nil && len(b) != len(d) {
		err = fmt.Errorf("a digest of %d bytes; want %d", len(b), len(d))
	}
	copy(d[:], b)
	return d, err
}

func readQC(there bool, from func() (Certificate, error)) (*message.QC, error) {
	if !there {
		return nil, nil //nolint:nilnil // messages have certificates that may be missing
	}
	c, err := from()
	if err != nil {
		return nil, err
	}
	block, err := readDigest(c.Block)
	if err != nil {
		return nil, err
	}
	signature, err := c.Signature()
	if err != nil {
		return nil, err
	}
	list, err := c.Signers()
	if err != nil {
		return nil, err
	}
	qc := &message.QC{Phase: message.Phase(c.Phase()), View: message.View(c.View()), Block: block, Signature: bytes.Clone(signature)}
	for i := range list.Len() {
		qc.Signers = append(qc.Signers, list.At(i))
	}
	return qc, nil
}

func readBlock(from Block) (*message.Block, error) {
	justify, err := readQC(from.HasJustify(), from.Justify)
	if err != nil {
		return nil, err
	}
	commands, err := readCommands(from.Commands)
	if err != nil {
		return nil, err
	}
	return message.NewBlock(message.View(from.View()), commands, justify), nil
}

func readBlocks(from func() (Block_List, error)) ([]*message.Block, error) {
	list, err := from()
	if err != nil {
		return nil, err
	}
	var blocks []*message.Block
	for i := range list.Len() {
		b, err := readBlock(list.At(i))
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

func readCommands(from func() (Command_List, error)) ([]message.Command, error) {
	list, err := from()
	if err != nil {
		return nil, err
	}
	var commands []message.Command
	for i := range list.Len() {
		c, err := ReadCommand(list.At(i))
		if err != nil {
			return nil, err
		}
		commands = append(commands, c)
	}
	return commands, nil
}

// ReadCommand returns a command.
func ReadCommand(from Command) (message.Command, error) {
	payload, err := from.Payload()
	return message.Command{
		CommandID: message.CommandID{Client: from.Client(), Sequence: from.Sequence()}, Payload: bytes.Clone(payload),
	}, err
}
