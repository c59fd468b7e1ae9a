import { kernelModels } from '../../kernels/index.js';
import { wrapText } from '../report/layout/index.js';
import { listHead, type ListHead } from './document-head.js';

/** Columns of a setting's key, with the spaces around it. */
const keyColumns = 23;

/** The kernel models with their settings, as text. */
export function describeKernels(columns = 80): string {
  const lines = kernelModels.flatMap(({ name, description, settings }) => [
    ...wrapText(`${name}  ${description}`, columns),
    ...settings.flatMap(({ key, description }) =>
      wrapText(description, columns - keyColumns).map(
        (line, i) => (i === 0 ? `  ${key}` : '').padEnd(keyColumns) + line,
      ),
    ),
  ]);
  return `${lines.join('\n')}\n`;
}

/** The kernel models with their settings, as `emulate list --json` writes them. */
export interface KernelList extends ListHead<'emulate-list'> {
  readonly models: readonly {
    readonly name: string;
    readonly description: string;
    readonly settings: readonly { readonly key: string; readonly description: string }[];
  }[];
}

/** The JSON document of the kernel models. */
export function kernelList(): KernelList {
  return {
    ...listHead('emulate-list'),
    models: kernelModels.map(({ name, description, settings }) => ({
      name,
      description,
      settings: settings.map(({ key, description }) => ({ key, description })),
    })),
  };
}
