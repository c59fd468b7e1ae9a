import type { FormatName } from '../../../formats/index.js';
import { type Problem, problemShape, type Window } from '../../../problem/index.js';
import { formatCount, formatNumber, plainText } from '../../../words/index.js';
import { describeFeatures, reportedFeatures, type ReportedFeatures } from './features.js';

/** The sizes and settings of a problem, as every report gives them. */
export interface ReportedProblem {
  readonly batch: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly seqlenQ: number;
  readonly seqlenK: number;
  readonly qkDim: number;
  readonly vDim: number;
  readonly formats: Readonly<Record<'q' | 'k' | 'v', FormatName>>;
  readonly scale: number;
  readonly causal: boolean;
  readonly window: Window | null;
  readonly softcap: number | null;
  /** Further features; left out where there are none. */
  readonly features?: ReportedFeatures;
}

/**
 * The reported sizes and settings of a problem.
 * @throws RequestError when the problem's shapes do not fit together
 */
export function reportedProblem(problem: Problem): ReportedProblem {
  const shape = problemShape(problem);
  const { q, k, v, scale, causal, window, softcap } = problem;
  const features = reportedFeatures(problem);
  return {
    batch: shape.batch,
    heads: shape.heads,
    kvHeads: shape.kvHeads,
    // For a sample of rows, all the rows of the problem.
    seqlenQ: problem.rows?.of ?? shape.queries,
    seqlenK: shape.keys,
    qkDim: shape.qkDim,
    vDim: shape.vDim,
    formats: { q: q.format, k: k.format, v: v.format },
    scale: scale === 0 ? 0 : scale,
    causal,
    window: window === null ? null : { left: window.left, right: window.right },
    softcap,
    ...(features === null ? {} : { features }),
  };
}

/** The sizes and settings of a problem, in the words of one sentence. */
export function describeReportedProblem(problem: ReportedProblem): string {
  const { batch, heads, kvHeads, seqlenQ, seqlenK, qkDim, vDim, formats, scale, window } = problem;
  const { q, k, v } = formats;
  const parts = [
    ...(batch === 1 ? [] : [`batch ${batch}`]),
    formatCount(heads, 'head') + (kvHeads === heads ? '' : ` (${kvHeads} of K and V)`),
    `${seqlenQ} queries × ${seqlenK} keys`,
    `dim ${qkDim}${vDim === qkDim ? '' : ` (V ${vDim})`}`,
    q === k && k === v ? q : `q ${q}, k ${k}, v ${v}`,
    `scale ${formatNumber(scale)}${scale === 1 / Math.sqrt(qkDim) ? ` (1/√${qkDim})` : ''}`,
    ...(problem.causal ? ['causal'] : []),
    ...(window === null ? [] : [`window ${window.left},${window.right}`]),
    ...(problem.softcap === null ? [] : [`softcap ${formatNumber(problem.softcap)}`]),
    ...(problem.features === undefined ? [] : describeFeatures(problem.features)),
  ];
  return parts.join(', ');
}

/** Names in the problem's file that the audit does not use; see `unusedInputs` of src/io. */
export interface UnusedNames {
  readonly ofAttention: readonly string[];
  readonly ofGradients: readonly string[];
  readonly unknown: readonly string[];
}

/** A warning for readers of the verdict. */
export interface ReportWarning {
  /** Whether the unused tensors change attention, belong to the backward pass, or are unknown. */
  readonly kind: 'unused-input' | 'unused-gradient' | 'unknown-tensor';
  /** Names as the file spells them; metadata keys have "metadata " before them. */
  readonly names: readonly string[];
  /** A clause without its full stop, such as "attention is judged without them". */
  readonly statement: string;
}

/** The warnings about unused inputs; none where everything is used. */
export function unusedWarnings(unused: UnusedNames | null): ReportWarning[] {
  if (unused === null) return [];
  const them = (names: readonly string[]) => (names.length === 1 ? 'it' : 'them');
  const warnings: ReportWarning[] = [
    {
      kind: 'unused-input',
      names: unused.ofAttention,
      statement: `attention is judged without ${them(unused.ofAttention)}`,
    },
    {
      kind: 'unused-gradient',
      names: unused.ofGradients,
      statement: 'these gradients are not judged',
    },
    {
      kind: 'unknown-tensor',
      names: unused.unknown,
      statement: 'no input or output is known by such a name',
    },
  ];
  return warnings
    .filter(({ names }) => names.length > 0)
    .map((warning) => ({ ...warning, names: [...warning.names] }));
}

/** "bias, mask: attention is judged without them". */
export function describeWarning({ names, statement }: ReportWarning): string {
  return `${names.map(plainText).join(', ')}: ${statement}`;
}

function conjoined(words: readonly string[]): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(', ')} and ${words.at(-1)!}`;
}

/** A verdict's sentence that states the unused inputs of the file, if they change attention. */
export function qualifiedSentence(sentence: string, warnings: readonly ReportWarning[]): string {
  const names = warnings
    .filter(({ kind }) => kind === 'unused-input')
    .flatMap(({ names }) => names.map(plainText));
  if (names.length === 0) return sentence;
  return `${sentence.replace(/\.$/, '')}; judged without the file's ${conjoined(names)}.`;
}
