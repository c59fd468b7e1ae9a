import type {
  AuditedVectors,
  ElementTest,
  ErrorProfile,
  JudgedNumbers,
  NumberTest,
  SpreadTest,
  StructureResult,
} from '../../../audit/index.js';
import type { FormatName } from '../../../formats/index.js';
import { quantities, type Quantity } from '../../../problem/index.js';
import { toReported, type Reported } from '../report-number.js';

/** The names of a quantity, so that a reader of the report needs no table of them. */
type ReportedWords = Pick<Quantity, 'name' | 'prose' | 'label' | 'parts' | 'unit' | 'magnitude'>;

/** A judged quantity whose rows are vectors. */
export interface ReportedVectors extends ReportedWords {
  readonly row: 'vector';
  readonly format: FormatName;
  readonly error: Reported<ErrorProfile>;
  readonly elements: Reported<ElementTest>;
  readonly spread: Reported<SpreadTest>;
  readonly numbers: null;
  readonly structure: readonly Reported<StructureResult>[];
}

/** A judged quantity that is one number a row. */
export interface ReportedNumbers extends ReportedWords {
  readonly row: 'number';
  readonly format: FormatName;
  readonly error: null;
  readonly elements: null;
  readonly spread: null;
  readonly numbers: Reported<NumberTest>;
  readonly structure: readonly Reported<StructureResult>[];
}

/** A judged quantity: one of the report's `outputs`. */
export type ReportedOutput = ReportedVectors | ReportedNumbers;

/** The report of a judged quantity. */
export function reportedOutput(judged: AuditedVectors | JudgedNumbers): ReportedOutput {
  const { quantity, format } = judged;
  const { name, prose, label, parts, unit, magnitude } = quantity;
  const structure = toReported(judged.structure);
  const words = { name, prose, label, parts, unit, magnitude };
  return judged.row === 'vector'
    ? {
        row: 'vector',
        ...words,
        format,
        error: toReported(judged.error),
        elements: toReported(judged.elements),
        spread: toReported(judged.spread),
        numbers: null,
        structure,
      }
    : {
        row: 'number',
        ...words,
        format,
        error: null,
        elements: null,
        spread: null,
        numbers: toReported(judged.numbers),
        structure,
      };
}

/** A holder of a report's outputs. */
interface OutputHolder {
  readonly outputs: readonly [ReportedVectors, ...ReportedOutput[]];
}

/** The kernel's main output, which plots and the usual checks are for: the first of the outputs. */
export function mainOutput({ outputs }: OutputHolder): ReportedVectors {
  return outputs[0];
}

/** The outputs whose rows are vectors, the main one first. */
export function vectorsOf({ outputs }: OutputHolder): readonly ReportedVectors[] {
  return outputs.filter((output) => output.row === 'vector');
}

/** The outputs that are one number a row. */
export function numbersOf({ outputs }: OutputHolder): readonly ReportedNumbers[] {
  return outputs.filter((output) => output.row === 'number');
}

/** The quantities that a kernel was expected to give and did not give. */
export function missingQuantities({ outputs }: OutputHolder): readonly Quantity[] {
  return quantities.filter(
    ({ name, isExpected }) => isExpected && !outputs.some((output) => output.name === name),
  );
}

/** The name of a quantity in tables: its label, or its name where there is no such quantity. */
export function quantityLabel(name: string): string {
  return quantities.find((quantity) => quantity.name === name)?.label ?? name;
}
