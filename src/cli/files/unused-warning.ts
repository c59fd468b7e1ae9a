import { unusedInputs, type TensorFile, printable } from '../../io/index.js';

/** A line on stderr that names inputs of attention which the file holds and nothing reads; or nothing. */
export function warnOfUnusedInputs(file: TensorFile): void {
  const { ofAttention } = unusedInputs(file);
  if (ofAttention.length === 0) return;
  const names = ofAttention.map(printable).join(', ');
  process.stderr.write(
    `warning: ${printable(file.path)}: not used: ${names}; attention is computed without\n`,
  );
}
