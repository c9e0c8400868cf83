/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import React, { useId, useState } from 'react';

import type { Reason } from '../api/records';
import type { ISize } from '../owners';
import { Copy } from './copy';
import { reasonText } from './words';

/**
 * What a person is told and offered.
 */
interface IColdOffer {
  /** Other machines; empty where the browser cannot choose one. */
  sizes: readonly ISize[];

  /** Why a machine cannot be chosen, or why the last choice did not work; null when nothing is wrong. */
  problem: Reason | null;

  /** What starts it without its memory on the machine that it was on. */
  command: string;
}

/**
 * Offer to start the workspace without its memory: on another machine from here, on the same one by a command.
 *
 * @returns the machine that was chosen, or null.
 */
export async function offerColdStart(
  offer: IColdOffer,
  trans: TranslationBundle
): Promise<string | null> {
  const choosable = offer.sizes.length > 0;
  const result = await showDialog<string>({
    title: trans.__('Start without the memory?'),
    body: new ColdBody(offer, trans),
    buttons: choosable
      ? [
          Dialog.cancelButton({ label: trans.__('Keep the memory') }),
          Dialog.warnButton({ label: trans.__('Start on the chosen machine') })
        ]
      : [Dialog.cancelButton({ label: trans.__('Close') })],
    defaultButton: 0
  });
  return choosable && result.button.accept ? result.value : null;
}

/**
 * The body of the dialog; its value is the machine that is chosen.
 */
class ColdBody extends ReactWidget implements Dialog.IBodyWidget<string> {
  constructor(
    private readonly _offer: IColdOffer,
    private readonly _trans: TranslationBundle
  ) {
    super();
    this._chosen = _offer.sizes[0]?.id ?? '';
  }

  /** The machine that is chosen; empty when there is none. */
  getValue(): string {
    return this._chosen;
  }

  /** Render what is offered. */
  protected override render(): JSX.Element {
    return (
      <ColdOffer
        {...this._offer}
        choose={size => {
          this._chosen = size;
        }}
        trans={this._trans}
      />
    );
  }

  private _chosen: string;
}

/**
 * What starting without the memory means, and both ways to it.
 */
export function ColdOffer(
  props: IColdOffer & {
    choose: (size: string) => void;
    trans: TranslationBundle;
  }
): JSX.Element {
  const { sizes, problem, command, trans } = props;
  const text = reasonText(problem, trans);
  return (
    <div className="jp-Pause-dialog">
      {text && (
        <p className="jp-Pause-warning" role="alert">
          {text}
        </p>
      )}
      {sizes.length > 0 && <Sizes {...props} />}
      <h3>{trans.__('On the machine it was on')}</h3>
      <p>
        {trans.__(
          'Only a command can do that. It leaves the snapshot where it is, and says how to come back to it:'
        )}
      </p>
      <pre className="jp-Pause-commands">{command}</pre>
      <Copy text={command} label={trans.__('Copy command')} trans={trans} />
    </div>
  );
}

function Sizes(props: {
  sizes: readonly ISize[];
  choose: (size: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { sizes, choose, trans } = props;
  const id = useId();
  const [chosen, setChosen] = useState(sizes[0].id);
  return (
    <>
      <h3>{trans.__('On another machine')}</h3>
      <p>
        {trans.__(
          'A snapshot fits only the kind of machine that it was made on. On another one the workspace normally starts fresh: the same files, new processes. Kernel checkpoints are offered then.'
        )}
      </p>
      <p className="jp-Pause-warning">
        {trans.__(
          'Once the new pod is ready, the platform removes the snapshot. What is in memory only, and in no kernel checkpoint, is lost for good.'
        )}
      </p>
      <fieldset className="jp-Pause-sizes">
        <legend>{trans.__('Start it on')}</legend>
        {sizes.map(size => (
          <label key={size.id}>
            <input
              type="radio"
              name={id}
              value={size.id}
              checked={chosen === size.id}
              onChange={() => {
                setChosen(size.id);
                choose(size.id);
              }}
            />
            <span>
              {size.name}
              {size.about && (
                <span className="jp-Pause-detail"> {size.about}</span>
              )}
            </span>
          </label>
        ))}
      </fieldset>
    </>
  );
}
