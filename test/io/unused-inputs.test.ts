import { describe, expect, it } from 'vitest';
import { unusedInputs, type TensorEntry, type TensorFile } from '../../src/io/index.js';

/** What is not used of a file with these tensors and notes, besides what `read` names. */
function unusedOf(
  names: readonly string[],
  metadata: TensorFile['metadata'] = {},
  read?: string[],
) {
  const entries = new Map(names.map((name) => [name, {} as TensorEntry]));
  return unusedInputs({ entries, metadata } as unknown as TensorFile, {
    tensors: read ?? [],
    notes: [],
  });
}

const nothing = { ofAttention: [], ofGradients: [], unknown: [] };

describe('inputs that are not used', () => {
  it('are none where all is read, or is an output by its name', () => {
    const outputs = ['out', 'lse', 'fa4.out', 'torch_flash.lse', 'softmax_lse', 'o', 'attn_output'];
    expect(unusedOf(['q', 'k', 'v', ...outputs])).toEqual(nothing);
    expect(unusedOf(['q', 'k', 'v', 'mine'], {}, ['mine'])).toEqual(nothing);
    const notes = { scale: '1', causal: 'true', window: '3,0', softcap: '30', layout: 'bshd' };
    expect(unusedOf(['q', 'k', 'v'], { ...notes, gpu: 'B200', seed: '7' })).toEqual(nothing);
  });

  it.each([
    ...['mask', 'attn_mask', 'attention_mask', 'key_padding_mask', 'bias', 'attn_bias'],
    ...['alibi', 'alibi_slopes', 'sink', 'sinks', 's_aux', 'q_segments', 'k_segments'],
    ...['segment_ids', 'kv_num_blocks', 'kv_indices', 'cu_seqlens_q', 'cu_seqlens_k'],
    ...['seqused_q', 'seqused_k', 'leftpad_k', 'block_table', 'page_table', 'dropout_mask'],
    ...['rng_state', 'q_descale', 'k_descale', 'v_descale', 'cache_seqlens', 'Mask'],
  ])('%s changes attention', (name) => {
    expect(unusedOf(['q', 'k', 'v', 'out', name])).toEqual({ ...nothing, ofAttention: [name] });
  });

  it.each(['dout', 'dq', 'dk', 'dv', 'dbias', 'dsink', 'grad_out', 'torch.dq'])(
    '%s is of the backward pass',
    (name) => {
      expect(unusedOf(['q', name])).toEqual({ ...nothing, ofGradients: [name] });
    },
  );

  it('are named where their names say nothing', () => {
    expect(unusedOf(['q', 'x', 'weights'])).toEqual({ ...nothing, unknown: ['x', 'weights'] });
  });

  it('may be metadata, of the file or under its meta, unless that leaves attention alone', () => {
    const names = (metadata: TensorFile['metadata']) => unusedOf(['q'], metadata).ofAttention;
    expect(names({ dropout_p: '0.1' })).toEqual(['metadata dropout_p']);
    for (const zero of ['0', '0.0', 'None']) expect(names({ dropout_p: zero })).toEqual([]);
    expect(names({ meta: '{"dropout_p": 0.1, "seed": 1}' })).toEqual(['metadata dropout_p']);
    expect(names({ meta: '{"dropout_p": 0.0}' })).toEqual([]);
    expect(names({ kv_layout: 'NHD', lse_sink: 'true' })).toEqual(['metadata lse_sink']);
  });
});
