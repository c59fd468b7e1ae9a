import { describe, expect, it } from 'vitest';
import {
  type PtxInstruction,
  type PtxModule,
  type Statement,
  parsePtx,
} from '../../../src/ptx/syntax/index.js';
import { capturedKernel, capturedKernels } from '../../fixtures/captured-ptx.js';

/** All instructions of some statements, those of blocks included. */
function instructionsOf(statements: readonly Statement[]): readonly PtxInstruction[] {
  return statements.flatMap((statement) => {
    if (statement.kind === 'block') return instructionsOf(statement.statements);
    return statement.kind === 'instruction' ? [statement] : [];
  });
}

/** `line: mnemonic` of every instruction of a module. */
function mnemonics({ functions }: PtxModule): readonly string[] {
  return functions
    .flatMap(({ body }) => instructionsOf(body ?? []))
    .map(({ opcode, modifiers, place }) => `${place.line}: ${[opcode, ...modifiers].join('.')}`);
}

/** The same by the layout of the text: compilers begin an instruction on a line, behind `;` or behind the `{` of a block. */
function mnemonicsByLine(ptx: string): readonly string[] {
  const first =
    /^[\s{}]*(?:@!?\S+\s+)?((?!param\d)[a-z][a-z0-9]*(?:[.][\w:]+)*)(?:\s*$|\s+[^\s:=])/;
  return ptx.split('\n').flatMap((line, i) =>
    line
      .replace(/\/\/.*$/, '')
      .split(';')
      .flatMap((piece) => first.exec(piece)?.[1] ?? [])
      .map((mnemonic) => `${i + 1}: ${mnemonic}`),
  );
}

const texts = [...new Set(capturedKernels.map(({ text }) => text))].map((text) => ({
  text,
  kernels: capturedKernels.filter((kernel) => kernel.text === text),
}));

describe('captured kernels', () => {
  it.each(texts)('$text: all instructions and parameters are found', ({ text, kernels }) => {
    const { ptx } = capturedKernel(kernels[0]?.name ?? '');
    const module = parsePtx(ptx, text);
    const found = mnemonics(module);
    expect(found.length).toBeGreaterThan(20);
    expect(found).toEqual(mnemonicsByLine(ptx));
    for (const { launch } of kernels) {
      const entry = module.functions.find(({ name }) => name === launch.entry);
      expect(entry).toMatchObject({ kind: 'entry' });
      expect(entry?.parameters).toHaveLength(launch.parameters.length);
    }
  });
});
