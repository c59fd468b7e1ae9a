import {
  machineFiles,
  namesRead,
  ownTensor,
  printable,
  unusedInputs,
  type ProblemSettings,
  type TensorFile,
} from '../../io/index.js';

/** Whether `<file>[:<tensor>]` is in the problem's own file. */
export function namesOwnFile(text: string): boolean {
  return ownTensor(text, machineFiles, '') !== null;
}

/** A line on stderr that names inputs of attention which the file holds and nothing reads; or nothing. */
export function warnOfUnusedInputs(file: TensorFile, settings: ProblemSettings): void {
  const { ofAttention } = unusedInputs(file, namesRead(file, settings));
  if (ofAttention.length === 0) return;
  const names = ofAttention.map(printable).join(', ');
  process.stderr.write(
    `warning: ${printable(file.path)}: not used: ${names}; attention is computed without\n`,
  );
}
