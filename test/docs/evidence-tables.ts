import { fa4Evidence, type Fa4Architecture, type Fa4Format } from '../../kernels/index.js';
import { fingerprintTargets, tableTargets } from '../../src/conform/targets.js';
import {
  blockScaledArithmetic,
  tensorCoreArithmetic,
  tensorCoreEvidence,
  type TensorCoreArithmetic,
} from '../../src/hardware/index.js';

type Row = readonly string[];

const architectures: readonly Fa4Architecture[] = ['sm_90', 'sm_100', 'sm_103', 'sm_110'];
/** One format of each width: both have the same evidence, which a test checks. */
const widths: readonly (readonly [Fa4Format, string])[] = [
  ['bf16', 'bf16, fp16'],
  ['e4m3', 'e4m3, e5m2'],
];
/** More than one, for the evidence of the combine. */
const splits = 2;

/** What each part of FlashAttention-4's forward rests on; a part that is equal everywhere has one row. */
export function forwardRows(): Row[] {
  const rows = architectures.flatMap((architecture) =>
    widths.flatMap(([format, formats]) =>
      // FlashAttention-4 takes no fp8 there.
      architecture === 'sm_110' && format === 'e4m3'
        ? []
        : fa4Evidence(architecture, format, splits).map((line) => {
            const [part, evidence] = line.split(/: (.*)/s);
            return [part, architecture, formats, evidence] as const;
          }),
    ),
  );
  const parts = [...new Set(rows.map(([part]) => part))];
  return parts.flatMap((part) => {
    const own = rows.filter((row) => row[0] === part);
    const merge = (group: typeof own, at: 1 | 2) =>
      [...new Set(group.map((row) => row[at]))].join(', ');
    const evidences = [...new Set(own.map(([, , , evidence]) => evidence))];
    return evidences.map((evidence) => {
      const group = own.filter((row) => row[3] === evidence);
      const everywhere = group.length === own.length;
      return [
        part,
        everywhere ? 'all' : merge(group, 1),
        everywhere ? 'all' : merge(group, 2),
        evidence,
      ];
    });
  });
}

function operandsOf({ operands, mixed }: TensorCoreArithmetic): string {
  const list = operands.join(', ');
  return mixed ? `${list}, also mixed` : list;
}

/** The arithmetic of the tensor cores; architectures of which nothing is known have a row each. */
export function tensorCoreRows(): Row[] {
  const known = tensorCoreArithmetic.filter(({ evidence }) => evidence !== 'assumed');
  const assumed = tensorCoreArithmetic.filter(({ evidence }) => evidence === 'assumed');
  const isKnown = (row: TensorCoreArithmetic) =>
    known.some(
      ({ instruction, architecture }) =>
        instruction === row.instruction && architecture === row.architecture,
    );
  const unknown = new Map(
    assumed
      .filter((row) => !isKnown(row))
      .map((row) => [`${row.instruction} ${row.architecture}`, row]),
  );
  return [
    ...[...known, ...assumed.filter(isKnown)].map((row) => [
      `${row.instruction}, ${row.architecture}`,
      ...[operandsOf(row), row.accumulator, String(row.productsPerSum)],
      ...[String(row.alignedFractionBits), String(row.resultFractionBits), tensorCoreEvidence(row)],
    ]),
    ...[...unknown.values()].map((row) => [
      `${row.instruction}, ${row.architecture}`,
      ...['all', '', '', '', '', tensorCoreEvidence(row)],
    ]),
  ];
}

/** The block-scaled products; architectures of which nothing is known have a row each. */
export function blockScaledRows(): Row[] {
  const evidenceOf = (evidence: string) =>
    evidence === 'assumed' ? '[assumed] as its other formats' : '[model] MMA-Sim, arXiv 2511.10909';
  const known = ['sm_100', 'sm_120'];
  const rows = blockScaledArithmetic
    .filter(({ architecture }) => known.includes(architecture))
    .map((row) => [
      `${row.instruction}, ${row.architecture}`,
      `${row.kind}: ${row.operands.join(', ')}`,
      `${row.scale}, ${row.block}`,
      String(row.productsPerTerm),
      String(row.alignedFractionBits),
      evidenceOf(row.evidence),
    ]);
  const others = new Set(
    blockScaledArithmetic
      .filter(({ architecture }) => !known.includes(architecture))
      .map(({ instruction, architecture }) => `${instruction}, ${architecture}`),
  );
  return [
    ...rows,
    ...[...others].map((name) => [name, 'all', '', '', '', '[assumed] as on sm_100']),
  ];
}

/** The instructions that were compared on every input, by how many inputs there are. */
export function instructionRows(): Row[] {
  const names = (list: readonly { readonly instruction: string }[]) =>
    list.map(({ instruction }) => `\`${instruction}\``).join(', ');
  return [
    ['2^32', names(fingerprintTargets)],
    ['65,536', names(tableTargets)],
  ];
}

/** A table as Markdown, unaligned. */
export function markdownTable(columns: Row, rows: readonly Row[]): string {
  const line = (cells: Row) => `| ${cells.join(' | ')} |`;
  return [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n');
}

/** The tables of docs/reference/emulation.md, by the marks between which they stand. */
export const evidenceTables: Readonly<Record<string, () => string>> = {
  forward: () => markdownTable(['part', 'architecture', 'Q, K, V', 'evidence'], forwardRows()),
  'tensor-cores': () =>
    markdownTable(
      ['instruction', 'operands', 'into', 'products', 'F', 'kept', 'evidence'],
      tensorCoreRows(),
    ),
  'block-scaled': () =>
    markdownTable(
      ['instruction', 'elements', 'factors', 'products of a term', 'F', 'evidence'],
      blockScaledRows(),
    ),
  instructions: () => markdownTable(['inputs', 'instructions'], instructionRows()),
};
