import {
  recurrentValues,
  type RecurrentArithmetic,
  type RecurrentValue,
} from '../../../kernels/index.js';
import type { FormatName } from '../../formats/index.js';
import type { RecurrentProblem } from '../../problem/index.js';
import type { RecurrentDeclaration } from './declaration.js';

const short: readonly RecurrentValue[] = [
  'state-operand',
  'normalised',
  'operand',
  'inverse',
  'write-factor',
  'write',
  'write-operand',
  'intra',
  'state-gradient',
  'write-gradient',
  'intra-gradient',
];
export function arithmeticsOf(
  problem: RecurrentProblem,
  declared: RecurrentDeclaration,
): readonly RecurrentArithmetic[] {
  const make = (form: 'recurrent' | 'chunked'): RecurrentArithmetic => ({
    form,
    chunk: declared.chunk ?? 64,
    inverse: 'substitution',
    isReversed: false,
    outputs: {},
    formats: Object.fromEntries(
      recurrentValues.map((value) => [
        value,
        form === 'chunked' && short.includes(value)
          ? problem.v.format
          : value === 'state'
            ? (declared.state ?? 'fp32')
            : 'fp32',
      ]),
    ) as Record<RecurrentValue, FormatName>,
  });
  return declared.form === undefined ? [make('recurrent'), make('chunked')] : [make(declared.form)];
}
export function describeArithmetics(_: RecurrentProblem, declared: RecurrentDeclaration): string {
  return declared.form ?? 'either form';
}
