// The confusion matrix: rows are true classes, columns predictions. Shares are of a row.
import { useMemo, useState } from 'preact/hooks';
import { Figure } from '../../figures/figure';
import { Cell, ColourKey, Matrix, matrixGrid } from '../../figures/matrix';
import { csv, percent } from '../../format';
import { Panel } from '../../ui/blocks';

export function Confusion({ classes, counts }: { classes: string[]; counts: number[][] }) {
  const [hover, setHover] = useState<Cell | null>(null);
  const names = classes.length === counts.length ? classes : counts.map((_, i) => String(i));
  const grid = useMemo(() => {
    const shares = counts.map(row => {
      const sum = row.reduce((a, b) => a + b, 0);
      return row.map(value => (sum ? value / sum : 0));
    });
    return matrixGrid(shares, { least: 0, most: 1 });
  }, [counts]);
  const worst = useMemo(
    () =>
      counts
        .flatMap((row, truth) => row.map((count, guess) => ({ truth, guess, count })))
        .filter(each => each.truth !== each.guess && each.count > 0)
        .sort((a, b) => b.count - a.count)
        .slice(0, 8),
    [counts],
  );
  const text = hover
    ? `${names[hover.row]} predicted as ${names[hover.column]}: ${counts[hover.row][hover.column]} (${percent(grid.value(hover.row, hover.column))})`
    : 'Rows: true class. Columns: prediction.';
  return (
    <Panel title="Confusion matrix" about={text}>
      <div class="columns" style={{ '--least': '320px' }}>
        <Figure
          data={() => ({
            name: 'confusion',
            json: { classes: names, counts },
            csv: csv([['true \\ predicted', ...names], ...counts.map((row, i) => [names[i], ...row])]),
          })}
        >
          {width => (
            <>
              <Matrix
                grid={grid}
                width={width}
                rows={names}
                columns={names}
                label="Confusion matrix"
                hover={hover}
                onHover={setHover}
                maxHeight={560}
              />
              <ColourKey least={0} most={1} />
            </>
          )}
        </Figure>
        <div>
          <h3>Most frequent mistakes</h3>
          <table>
            <tbody>
              {worst.map(({ truth, guess, count }) => (
                <tr key={`${truth}.${guess}`}>
                  <th scope="row">{names[truth]}</th>
                  <td class="muted">predicted as {names[guess]}</td>
                  <td class="right">{count}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </div>
    </Panel>
  );
}
