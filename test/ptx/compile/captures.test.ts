import { describe, expect, it } from 'vitest';
import { readKernel, readManifest, type CapturedKernel } from '../../../fixtures/ptx/unpack.mjs';
import { parsePtx, type PtxInstruction, type Statement } from '../../../src/ptx/syntax/index.js';
import { sampled } from '../../setup/effort.js';
import { knownRows } from './known-rows.js';

/** Names that lane instructions have, and whether some row of the name has code. */
const names = new Map<string, boolean>();
for (const row of knownRows) names.set(row.name, names.get(row.name) === true || row.emit !== null);

function instructionsOf(statements: readonly Statement[]): PtxInstruction[] {
  return statements.flatMap((statement) => {
    if (statement.kind === 'instruction') return [statement];
    return statement.kind === 'block' ? instructionsOf(statement.statements) : [];
  });
}

/** The row's name: a `mov` of a vector packs or unpacks. */
function nameOf({ opcode, modifiers, operands }: PtxInstruction): string {
  const name = [opcode, ...modifiers].join('.');
  const place = operands.findIndex(({ kind }) => kind === 'vector');
  const vector = operands[place];
  if (opcode !== 'mov' || vector?.kind !== 'vector') return name;
  return `${name}.${place === 0 ? 'unpack' : 'pack'}${vector.elements.length}`;
}

/** How many lane instructions a text has, and which of them have no emitter. */
function lanesOf(kernel: CapturedKernel): { count: number; without: string[] } {
  const { functions } = parsePtx(readKernel(kernel).ptx, kernel.text);
  const all = functions
    .flatMap(({ body }) => instructionsOf(body ?? []))
    .map(nameOf)
    .filter((name) => names.has(name));
  return { count: all.length, without: all.filter((name) => names.get(name) !== true) };
}

const { kernels } = readManifest();
const texts = [...new Map(kernels.map((kernel) => [kernel.text, kernel])).values()];

/** What runs lane by lane: fp64's fma and reciprocals, and what is rare. */
const laneByLane = [
  ...['fma.rn.f64', 'rcp.approx.ftz.f64', 'rsqrt.approx.ftz.f64'],
  ...['bfi.b64', 'mul.sat.f16x2', 'mapa.u64'],
  ...['sqrt.rz.f32', 'rcp.rp.f32', 'div.rm.f32'],
];

describe('lane instructions of captured kernels', () => {
  it.each(sampled(texts, 8))('$text: all but a few run in WebAssembly', (kernel) => {
    const { count, without } = lanesOf(kernel);
    expect(count).toBeGreaterThan(10);
    expect(without.filter((name) => !laneByLane.includes(name))).toEqual([]);
  });
});
