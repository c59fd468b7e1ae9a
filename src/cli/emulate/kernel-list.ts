import type { KernelModel } from '../../../kernels/index.js';
import { wrapText } from '../../report/layout/index.js';
import { listHead, type ListHead } from '../../jobs/index.js';
import { toolVersion } from '../tool-version.js';

/** Columns of a setting's key, with the spaces around it. */
const keyColumns = 23;

/** The kernel models with their settings, as text. */
export function describeKernels(models: readonly KernelModel[], columns = 80): string {
  const lines = models.flatMap(({ name, description, settings }) => [
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
export function kernelList(models: readonly KernelModel[]): KernelList {
  return {
    ...listHead('emulate-list', toolVersion()),
    models: models.map(({ name, description, settings }) => ({
      name,
      description,
      settings: settings.map(({ key, description }) => ({ key, description })),
    })),
  };
}
