import { Command } from 'commander';
import { vi } from 'vitest';
import { addAuditCommand } from '../../src/cli/audit.js';
import { addBoundCommand } from '../../src/cli/bound.js';
import { addEmulateCommand } from '../../src/cli/emulate.js';
import { addProfileCommand } from '../../src/cli/profile.js';

const adders = [addAuditCommand, addBoundCommand, addEmulateCommand, addProfileCommand];

/**
 * Runs the command line in this process, without the start of another; what it printed on standard
 * output. Rejects with what `main` would print on one line with exit status 2.
 */
export async function runInProcess(...args: readonly string[]): Promise<string> {
  const printed: string[] = [];
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed.push(String(text));
    return true;
  });
  const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
  for (const add of adders) add(program);
  program.commands.forEach((command) => command.exitOverride());
  try {
    await program.parseAsync(['node', 'flashproof', ...args]);
    return printed.join('');
  } finally {
    write.mockRestore();
  }
}
