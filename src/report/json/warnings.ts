import { plainText } from '../../words/index.js';

/** Names of what the problem's file holds and the audit does not use; see `unusedInputs` of src/io. */
export interface UnusedNames {
  readonly ofAttention: readonly string[];
  readonly ofGradients: readonly string[];
  readonly unknown: readonly string[];
}

/** What whoever reads the verdict has to know beside it. */
export interface ReportWarning {
  /** Whether what is not used changes attention, belongs to the backward pass, or is not known. */
  readonly kind: 'unused-input' | 'unused-gradient' | 'unknown-tensor';
  /** As the file spells them; metadata keys have "metadata " before them. */
  readonly names: readonly string[];
  /** A clause without its full stop, such as "attention is judged without them". */
  readonly statement: string;
}

/** The warnings about inputs that are not used; none where everything is. */
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
      statement: 'gradients are not judged',
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

/** A verdict's sentence that says what of the file it leaves out, if that changes attention. */
export function qualifiedSentence(sentence: string, warnings: readonly ReportWarning[]): string {
  const names = warnings
    .filter(({ kind }) => kind === 'unused-input')
    .flatMap(({ names }) => names.map(plainText));
  if (names.length === 0) return sentence;
  return `${sentence.replace(/\.$/, '')}; judged without the file's ${conjoined(names)}.`;
}
