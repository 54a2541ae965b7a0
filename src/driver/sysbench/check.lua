-- Looks whether the tables hold what the dataset says. Of rows that are not there sysbench reads nothing, is fast at it, and
-- does not complain.

sysbench.cmdline.options = {
   tables = {"Number of tables", 1},
   table_size = {"Number of rows per table", 10000}
}

function thread_init()
   con = sysbench.sql.driver():connect()
end

function event()
   for i = 1, sysbench.opt.tables do
      local last = tonumber((con:query_row("SELECT MAX(id) FROM sbtest" .. i))) or 0
      -- Deletes of rounds before may have taken the last rows.
      if last < 0.9 * sysbench.opt.table_size then
         error(string.format("table sbtest%d ends with row %d, its dataset has %d rows",
                             i, last, sysbench.opt.table_size), 0)
      end
   end
end

function thread_done()
   con:disconnect()
end
