! A sum and the index of the greatest element from Fortran 2008. The error stop makes the exit code 1 if one is wrong.
program sum_of_doubles
    use, intrinsic :: iso_c_binding
    implicit none

    ! Numbers of dpr.h, which never change.
    enum, bind(c)
        enumerator :: DPR_OK = 0, DPR_ERR_NULL_POINTER = 1
        enumerator :: DPR_SUM = int(z'100'), DPR_ARGMAX = int(z'105')
        enumerator :: DPR_F32 = int(z'20b'), DPR_F64 = int(z'20c')
    end enum

    interface
        integer(c_int) function dpr_reduce(elements, result, count, dtype, op) bind(c)
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value :: elements, result
            integer(c_size_t), value :: count
            integer(c_int), value :: dtype, op
        end function

        type(c_ptr) function dpr_last_error() bind(c)
            import :: c_ptr
        end function

        type(c_ptr) function dpr_op_name(op) bind(c)
            import :: c_int, c_ptr
            integer(c_int), value :: op
        end function

        type(c_ptr) function dpr_dtype_name(dtype) bind(c)
            import :: c_int, c_ptr
            integer(c_int), value :: dtype
        end function

        integer(c_size_t) function strlen(string) bind(c)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: string
        end function
    end interface

    integer :: i
    real(c_double), target :: x(1000) = [(real(i, c_double), i = 1, 1000)], total = 0
    real(c_float), target :: y(8) = [3, 1, 4, 1, 5, 9, 2, 6]
    integer(c_int64_t), target :: place = -1

    call expect(text(dpr_op_name(DPR_SUM)) == 'sum', 'the number of SUM')
    call expect(text(dpr_op_name(DPR_ARGMAX)) == 'argmax', 'the number of ARGMAX')
    call expect(text(dpr_dtype_name(DPR_F32)) == 'f32', 'the number of F32')
    call expect(text(dpr_dtype_name(DPR_F64)) == 'f64', 'the number of F64')

    call expect(dpr_reduce(c_loc(x), c_loc(total), size(x, kind=c_size_t), DPR_F64, DPR_SUM) == DPR_OK, 'the call')
    call expect(abs(total - 500500) <= 0, 'the sum')

    ! dpr counts from 0.
    call expect(dpr_reduce(c_loc(y), c_loc(place), size(y, kind=c_size_t), DPR_F32, DPR_ARGMAX) == DPR_OK, 'the call')
    call expect(place + 1 == maxloc(y, 1), 'the argmax')

    call expect(dpr_reduce(c_null_ptr, c_loc(total), 8_c_size_t, DPR_F64, DPR_SUM) == DPR_ERR_NULL_POINTER, 'an error')
    call expect(index(text(dpr_last_error()), 'in is NULL') == 1, 'the sentence of an error')
    print '(a, f0.1, a, i0)', 'sum ', total, ', greatest at ', place

contains

    subroutine expect(right, what)
        logical, intent(in) :: right
        character(*), intent(in) :: what

        if (.not. right) then
            print '(4a)', 'FAILED: ', what, '. Last error: ', text(dpr_last_error())
            error stop 1
        end if
    end subroutine

    function text(string)
        type(c_ptr), intent(in) :: string
        character(:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        integer :: i

        call c_f_pointer(string, letters, [strlen(string)])
        allocate (character(size(letters)) :: text)
        do i = 1, size(letters)
            text(i:i) = letters(i)
        end do
    end function
end program
