/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import type { Loss } from '../api/records';
import { reasonSentence } from '../reasons';

/**
 * What will not, or did not, come back: where it is, its type, the reason and the cell that made it.
 */
export function LossList(props: {
  losses: readonly Loss[];
  trans: TranslationBundle;
}): JSX.Element {
  const { losses, trans } = props;
  return (
    <ul className="jp-Pause-losses">
      {losses.map((loss, index) => (
        <li key={`${loss.path}-${index}`} className="jp-Pause-loss">
          <code className="jp-Pause-lossPath">{loss.path || loss.name}</code>
          {loss.type && <span className="jp-Pause-type">{loss.type}</span>}
          {loss.cell !== null && (
            <span className="jp-Pause-cell">
              {trans.__('made by cell [%1]', loss.cell)}
            </span>
          )}
          {loss.reason && (
            <span className="jp-Pause-reason">
              {reasonSentence(loss.reason, trans)}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}
