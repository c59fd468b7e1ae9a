import {
  namesRead,
  printable,
  unusedInputs,
  type ProblemSettings,
  type TensorFile,
} from '../../io/index.js';

/** Lines on stderr that name the contents of a file that nothing reads: inputs of attention, and unknown tensors; or nothing. */
export function warnOfUnusedInputs(file: TensorFile, settings: ProblemSettings): void {
  const { ofAttention, unknown } = unusedInputs(file, namesRead(file, settings));
  const warn = (names: readonly string[], statement: string) => {
    if (names.length === 0) return;
    const what = names.map(printable).join(', ');
    process.stderr.write(`warning: ${printable(file.path)}: not used: ${what}; ${statement}\n`);
  };
  warn(ofAttention, 'attention is computed without');
  warn(unknown, 'no input or output is known by such a name');
}
